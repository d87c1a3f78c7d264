#include "gateway/banner.hpp"

#include <catch2/catch.hpp>

#include "mcp/scan.hpp"
#include "sources/snapshot.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

ServerStatus server(std::string name, ServerState state, std::uint32_t tools = 0,
                    std::string reason = "") {
  ServerStatus out;
  out.name = std::move(name);
  out.type = "stdio";
  out.state = state;
  out.tools = tools;
  out.reason = std::move(reason);
  return out;
}

BannerFacts facts() {
  BannerFacts out;
  out.version = "1.2.3";
  out.endpoints = {"http://127.0.0.1:8808/mcp"};
  out.log_file = "/var/state/log/bulkhead.log";
  out.state_dir = "/var/state";
  return out;
}

}  // namespace

TEST_CASE("the banner has a configuration block for each client") {
  const std::string text = banner(facts());
  CHECK(has(text, "claude mcp add --transport http bulkhead http://127.0.0.1:8808/mcp\n"));
  CHECK(has(
      text,
      R"({ "servers": { "bulkhead": { "type": "http", "url": "http://127.0.0.1:8808/mcp" } } })"));
  CHECK(has(text, R"({ "mcpServers": { "bulkhead": { "url": "http://127.0.0.1:8808/mcp" } } })"));
  CHECK(
      has(text, R"({ "mcpServers": { "bulkhead": { "httpUrl": "http://127.0.0.1:8808/mcp" } } })"));
  CHECK(has(text, "/var/state/log/bulkhead.log"));
  CHECK(has(text, "none; using the builtin servers"));
}

TEST_CASE("each block of the banner is JSON") {
  const std::string text = banner(facts());
  std::size_t blocks = 0;
  for (std::size_t at = text.find("{ \""); at != std::string::npos; at = text.find("{ \"", at)) {
    const std::size_t end = text.find('\n', at);
    CHECK(mcp::valid_json(std::string_view(text).substr(at, end - at)));
    ++blocks;
    at = end;
  }
  CHECK(blocks == 3);
}

TEST_CASE("a token is read from its file and never printed") {
  BannerFacts with = facts();
  with.needs_token = true;
  with.token_file = "/var/state/secrets/http/token";
  const std::string text = banner(with);
  CHECK(has(text, "--header \"Authorization: Bearer $(cat /var/state/secrets/http/token)\""));
  CHECK(has(text, R"("Authorization": "Bearer TOKEN")"));
}

TEST_CASE("a wildcard address is shown as a loopback address in the client blocks") {
  BannerFacts all = facts();
  all.endpoints = {"http://0.0.0.0:8808/mcp"};
  std::string text = banner(all);
  CHECK(has(text, "Address   http://0.0.0.0:8808/mcp"));
  CHECK(has(text, "bulkhead http://127.0.0.1:8808/mcp"));
  CHECK(has(text, "From another machine"));
  all.endpoints = {"http://[::]:8808/mcp"};
  CHECK(has(banner(all), "bulkhead http://[::1]:8808/mcp"));
  CHECK_FALSE(has(banner(facts()), "From another machine"));
}

TEST_CASE("find_token() detects required tokens") {
  const auto found = [](std::string_view url, std::string_view config) {
    BannerFacts out;
    find_token(url, config, "F", &out);
    return (out.needs_token ? "token " : "open ") + out.token_file;
  };
  CHECK(found("http://127.0.0.1:1/mcp", "{}") == "open ");
  CHECK(found("http://[::1]:1/mcp", "{}") == "open ");
  CHECK(found("http://127.0.0.1:1/mcp", R"({"token":"auto"})") == "token F");
  CHECK(found("http://127.0.0.1:1/mcp", R"({"token":"mine"})") == "token ");
  CHECK(found("http://0.0.0.0:1/mcp", "{}") == "token F");
  CHECK(found("http://10.1.2.3:1/mcp", R"({"token":""})") == "token F");
}

TEST_CASE("the report shows why servers failed") {
  HostStatus status;
  CHECK(servers_report(status) == "No servers are configured.\n");
  status.servers = {server("good", ServerState::ready, 26),
                    server("bad", ServerState::failed, 0, "npx: command\033 not found\nmore"),
                    server("off", ServerState::disabled),
                    server("lazy", ServerState::idle, 3, "it is not running"),
                    server("new", ServerState::idle, 0, "it is not running")};
  status.collisions = {"a__b: two servers offer it"};
  const std::string text = servers_report(status);
  CHECK(has(text, "good    stdio  ready        26"));
  CHECK(has(text, "failed        -  npx: command? not found\n"));
  CHECK(has(text, "disabled      -\n"));
  CHECK(has(text, "lazy    stdio  idle          3  it is not running\n"));
  CHECK(has(text, "new     stdio  idle          -  it is not running\n"));
  CHECK(has(text, "Not offered: a__b: two servers offer it\n"));
}

TEST_CASE("the progress line counts enabled servers and names the pending ones") {
  HostStatus status;
  status.servers = {server("a", ServerState::ready),      server("b", ServerState::connecting),
                    server("c", ServerState::connecting), server("d", ServerState::disabled),
                    server("e", ServerState::failed),     server("f", ServerState::idle)};
  CHECK(progress_line(status) == "connecting: 1 of 5 ready, 1 idle, 1 failed, waiting for b, c");
}

TEST_CASE("a status snapshot is valid JSON and can be formatted as text") {
  HostStatus status;
  status.endpoints = {"http://127.0.0.1:8808/mcp"};
  status.servers = {server("git\"hub", ServerState::failed, 0, "auth\nrequired")};
  status.servers[0].restarts = 7;
  status.collisions = {"x"};
  status.sessions = 3;
  status.clients = {{"Claude\x1b[2J Code", "node", "http", "2025-11-25", 2, 7},
                    {"", "", "stdio", "", 1, 0}};
  status.calls = 1;
  status.servers_missing = {"own-proc"};
  status.counters = {{"drops", 3}, {"book.records_written", 12}, {"book.records_lost", 2}};
  PluginStatus plugin;
  plugin.id = "audit";
  plugin.state = "failed: no such file";
  status.plugins = {plugin};
  ProcessFacts process;
  process.version = "1.2.3";
  process.command = "serve";
  process.pid = 42;
  process.uptime_ms = 61'000;
  CompartmentStatus launcher;
  launcher.name = "launcher";
  launcher.state = "waiting";
  launcher.missing = {"landlock-tcp"};
  launcher.servers_missing = {"namespaces", "process-limit"};
  process.compartments = {launcher};
  status.policy_mark = {2, "d1", 1, {"1 rule added"}};
  const std::string json = snapshot_json(process, status);
  REQUIRE(mcp::valid_json(json));
  CHECK(mcp::member(mcp::member(json, "counters"), "drops") == "3");
  std::string text;
  REQUIRE(describe_snapshot(json, true, &text));
  CHECK(has(text, "bulkhead 1.2.3 serve  pid 42  http://127.0.0.1:8808/mcp\n"));
  CHECK(has(text, "up 1 min 1 s"));
  CHECK(has(text, "  policy: 1 rule in force, generation 2\n"));
  CHECK(mcp::member(json, "policy") == R"({"generation":2,"rules":1,"digest":"d1"})");
  // A policy plugin may have rules of its own.
  HostStatus other = status;
  other.policy_mark = {3, "d2", 0, {}};
  std::string without;
  REQUIRE(describe_snapshot(snapshot_json(process, other), true, &without));
  CHECK(has(without, "  policy: no rules in the profile, generation 3\n"));
  CHECK(has(text, "git\"hub"));
  INFO(text);
  CHECK(has(text, "CLIENT  CLAIMED          PROTOCOL    SESSIONS  CALLS\n"));
  CHECK(has(text, "node    Claude?[2J Code  2025-11-25         2      7\n"));
  const std::string_view clients = mcp::member(json, "clients");
  CHECK(
      has(std::string(clients), R"({"claimed_name":"Claude\u001b[2J Code","process_name":"node")"));
  CHECK(has(text, "failed      -         7  auth\n"));
  CHECK(has(text, "  book: 12 written, 2 lost\n"));
  CHECK(has(text, "not offered: x\n"));
  CHECK(has(text, "  not enforced in launcher: landlock-tcp\n"));
  CHECK(has(text, "  not enforced for servers of launcher: namespaces process-limit\n"));
  CHECK(has(text, "  not enforced for servers: own-proc\n"));
  CHECK(has(text, "plugin audit: failed: no such file\n"));
  CHECK(has(text, "up 1 min 1 s, 3 sessions, 1 call (0 in flight)\n"));
  CHECK(has(text, "COMPARTMENT"));
  std::string brief;
  REQUIRE(describe_snapshot(json, false, &brief));
  for (const char *fault : {"not offered: x\n", "plugin audit: failed", "book: 12 written, 2 lost",
                            "  compartment launcher: waiting\n", "status --verbose"}) {
    INFO(fault);
    CHECK(has(brief, fault));
  }
  for (const char *detail : {"COMPARTMENT", "landlock-tcp", "own-proc"}) {
    INFO(detail);
    CHECK_FALSE(has(brief, detail));
  }
}

TEST_CASE("the status of a healthy gateway is short") {
  HostStatus status;
  ProcessFacts process;
  process.pid = 1;
  CompartmentStatus endpoint;
  endpoint.name = "endpoint";
  endpoint.state = "running";
  endpoint.in_force = {"seccomp"};
  process.compartments = {endpoint};
  std::string text;
  REQUIRE(describe_snapshot(snapshot_json(process, status), false, &text));
  CHECK_FALSE(has(text, "compartment"));
  CHECK_FALSE(has(text, "verbose"));
  CHECK(has(text, "0 sessions, 0 calls"));
}

TEST_CASE("invalid status snapshots are not shown") {
  std::string text;
  CHECK_FALSE(describe_snapshot("", false, &text));
  CHECK_FALSE(describe_snapshot("HTTP/1.1 400 Bad Request", false, &text));
  CHECK_FALSE(describe_snapshot("[1]", false, &text));
  CHECK_FALSE(describe_snapshot("{\"a\":1}", false, &text));
  CHECK_FALSE(describe_snapshot("{\"pid\":1", false, &text));
  CHECK(describe_snapshot(R"({"pid":1,"servers":{"a":1},"endpoints":[1,null]})", false, &text));
}
