// Tests bh.host.control/1 with a transport plugin that is linked into the test.
#define BH_STATIC_PLUGIN
#include <catch2/catch.hpp>
#include <string>

#include "bulkhead/abi/ext/draft/control.h"
#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/tables.hpp"
#include "embed/fake_world.hpp"
#include "mcp/scan.hpp"

using namespace bulkhead;

namespace {

// The state of the plugin. Its functions call the host's tables, as a plugin would.
struct Seen {
  const bh_host *host = nullptr;
  const bh_host_control *control = nullptr;
  bh_session session = 0;
  std::vector<std::string> got;
  std::vector<std::string> reports;

  const bh_host_transport *transport() const {
    return static_cast<const bh_host_transport *>(host->get_ext(host->ctx, BH_EXT_HOST_TRANSPORT));
  }
  void send(const std::string &message) {
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    const bh_incoming incoming = bh::incoming(session, 0, message);
    transport()->deliver(host->ctx, &incoming, &delivery);
  }
  void open() {
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.transport = bh::str("test");
    REQUIRE(transport()->session_open(host->ctx, &peer, &session, nullptr) == BH_OK);
    send(R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":)"
         R"("2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})");
  }
  bh_status replace(const std::string &definitions, std::string *why = nullptr,
                    std::uint64_t wait_ms = 20'000) {
    bh_error error = bh::make_error();
    const bh_status status = control->replace_servers(
        host->ctx, bh::str(definitions), wait_ms,
        [](void *arg, bh_str report) {
          static_cast<Seen *>(arg)->reports.emplace_back(bh::view(report));
        },
        this, &error);
    if (why != nullptr) *why = bh::text(error);
    return status;
  }
  std::string servers() const {
    bh_buf out{};
    REQUIRE(control->list_servers(host->ctx, &out, nullptr) == BH_OK);
    const bh::Buf owned(out);
    CHECK(mcp::valid_json(owned.view()));
    return std::string(owned.view());
  }
  bh_status items(std::uint32_t kind, std::string *out) const {
    bh_buf buf{};
    const bh_status status = control->list_items(host->ctx, session, kind, &buf, nullptr);
    const bh::Buf owned(buf);
    *out = owned.view();
    if (status == BH_OK) CHECK(mcp::valid_json(*out));
    return status;
  }
};
Seen seen;

class ControlTransport {
 public:
  static constexpr bh::Info info{.id = "control-transport",
                                 .name = "Control",
                                 .version = "1",
                                 .vendor = "test",
                                 .config_schema = {},
                                 .provides = {BH_EXT_TRANSPORT}};
  explicit ControlTransport(const bh_host *host) {
    seen = Seen{};
    seen.host = host;
    seen.control =
        static_cast<const bh_host_control *>(host->get_ext(host->ctx, BH_EXT_HOST_CONTROL));
  }
  bh_status configure(bh_str, bh_error *) { return BH_OK; }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TRANSPORT) ? bh::transport_table<ControlTransport>() : nullptr;
  }
  bh_status listen(bh_error *) { return BH_OK; }
  void stop_accepting() {}
  bh_status send(const bh_outgoing &message) {
    std::string text;
    for (std::uint32_t i = 0; i < message.part_count; ++i) text += bh::view(message.parts[i]);
    seen.got.push_back(text);
    return BH_OK;
  }
  void session_ended(bh_session, bh_str) {}
  bh_str endpoint() { return bh::str("control-transport"); }
};
BH_PLUGIN(ControlTransport)

struct ControlWorld : World {
  explicit ControlWorld(bool granted = true) {
    profile.connectors["stdio"] = profile.connectors["http"] = "fake-connector";
    PluginUse use;
    use.id = use.plugin = "control-transport";
    use.config_json = "{}";
    if (granted) use.grants = {"control"};
    profile.transports = {use};
    HostOptions options;
    options.static_plugins = {{"fake-connector", bh_static_entry_FakeConnector},
                              {"control-transport", bh_static_entry_ControlTransport}};
    host = *Host::create(profile, std::move(options));
    REQUIRE(host->start().has_value());
    REQUIRE(turn_until([&] { return host->settled(); }));
  }
  std::string report() {
    REQUIRE(turn_until([&] { return !seen.reports.empty(); }));
    const std::string out = seen.reports.front();
    seen.reports.erase(seen.reports.begin());
    CHECK(mcp::valid_json(out));
    return out;
  }
};

}  // namespace

TEST_CASE("control: the table is offered only to instances that the profile authorizes") {
  {
    ControlWorld with;
    CHECK(seen.control != nullptr);
  }
  ControlWorld without(false);
  CHECK(seen.control == nullptr);
}

TEST_CASE("control: changes to servers that a profile layer protects are rejected") {
  ControlWorld w;
  seen.open();
  Profile held = w.profile;
  held.server_holds = {{{"mcpServers", "shell"}, true, "no shells"},
                       {{"mcpServers", "*", "sandbox"}, false, "sandboxes stay"}};
  REQUIRE(w.host->apply(held).has_value());
  REQUIRE(seen.replace(R"([{"name":"shell","command":"fake"},
      {"name":"loose","command":"fake","sandbox":"off"},{"name":"g","command":"fake"}])") ==
          BH_PENDING);
  const std::string report = w.report();
  CHECK(report.find(R"("refused":[{"name":"shell","reason":"no shells"},)"
                    R"({"name":"loose","reason":"sandboxes stay"}])") != std::string::npos);
  CHECK(seen.servers().find(R"("name":"g")") != std::string::npos);
  // If a reload adds a hold, the servers to which it applies are removed.
  held.server_holds = {{{"mcpServers"}, false, "ours only"}};
  REQUIRE(w.host->apply(held).has_value());
  CHECK(seen.servers().find(R"("name":"g")") == std::string::npos);
  CHECK(seen.servers().find(R"("name":"a")") != std::string::npos);
}

TEST_CASE(
    "control: a new list replaces the plugin's previous servers but no server of the profile") {
  ControlWorld w;
  seen.open();
  w.up.tools["g"] = R"([{"name":"say","description":"d"}])";
  REQUIRE(seen.replace(R"([{"name":"g","command":"fake","source":"claude"},
      {"name":"h","url":"http://u:p@127.0.0.1:1/x?token=t#f","enabled":false},
      {"name":"a","command":"taken"},{"name":"x__y","command":"c"},{"name":"","command":"c"},
      {"name":"builtin","command":"c"},{"name":"t","command":"c","enviroment":{}},
      {"name":"g","command":"twice"},{"command":"nameless"}])") == BH_PENDING);
  CHECK(seen.reports.empty());  // the report is never sent before replace_servers() returns
  const std::string report = w.report();
  CHECK(report.find(R"("added":2,"changed":0,"removed":0,"unchanged":2,"ready":1,"failed":[])") !=
        std::string::npos);
  for (const char *refused : {R"({"name":"a")", R"({"name":"x__y")", R"({"name":"")",
                              R"({"name":"builtin")", R"({"name":"t")", R"({"name":"g")"}) {
    INFO(refused << " in " << report);
    CHECK(report.find(refused) != std::string::npos);
  }
  const std::string servers = seen.servers();
  CHECK(servers.find(R"({"name":"g","type":"stdio","url":"","enabled":true,"source":"claude",)"
                     R"("is_stdio":true,"state":"ready","reason":"","connected":true,)"
                     R"("restarts":0,"tool_count":1,"resource_count":0,"prompt_count":0})") !=
        std::string::npos);
  CHECK(servers.find(R"({"name":"h","type":"http","url":"http://127.0.0.1:1/x","enabled":false,)"
                     R"("source":"profile","is_stdio":false,"state":"disabled")") !=
        std::string::npos);
  CHECK(servers.find(R"("name":"a")") != std::string::npos);

  std::string items;
  REQUIRE(seen.items(BH_LIST_TOOLS, &items) == BH_OK);
  CHECK(items.find(R"({"server":"g","name":"g__say","original_name":"say",)"
                   R"("item":{"name":"say","description":"d"}})") != std::string::npos);
  CHECK(items.find(R"("server":"a","name":"a__x")") != std::string::npos);

  // Removes one of the two added servers. The other one keeps its connection.
  const std::size_t lanes = w.up.lanes.size();
  REQUIRE(seen.replace(R"([{"name":"g","command":"fake","source":"claude"}])") == BH_PENDING);
  CHECK(w.report().find(R"("added":0,"changed":0,"removed":1,"unchanged":3,"ready":1)") !=
        std::string::npos);
  CHECK(w.up.lanes.size() == lanes);
  // A profile reload does not remove the servers that the plugin added.
  w.profile.servers = {server("b")};
  REQUIRE(w.host->apply(w.profile).has_value());
  CHECK(seen.servers().find(R"("name":"g")") != std::string::npos);
  CHECK(seen.servers().find(R"("name":"a")") == std::string::npos);
  REQUIRE(seen.replace("[]") == BH_PENDING);
  CHECK(w.report().find(R"("removed":1)") != std::string::npos);
  CHECK(seen.servers().find(R"("name":"g")") == std::string::npos);
}

TEST_CASE("control: the report waits, up to a limit, until the old server has closed") {
  ControlWorld w;
  seen.open();
  w.up.tools["g"] = R"([{"name":"say"}])";
  seen.replace(R"([{"name":"g","command":"fake","timeout":1500}])");
  w.report();
  std::string items;
  REQUIRE(seen.items(BH_LIST_TOOLS, &items) == BH_OK);
  CHECK(items.find(R"("original_name":"say","timeout_ms":1500,)") != std::string::npos);
  seen.send(R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"g__say"}})");
  const std::string id = FakeUpstreams::id_of(w.up.last("g"));
  const bh_lane lane = w.up.lane("g").handle;
  w.up.hold_tools = true;
  seen.replace(R"([{"name":"g","command":"other"}])", nullptr, 50);
  CHECK(w.report().find(R"("changed":1,"removed":0,"unchanged":2,"ready":0,"failed":[{"name":"g",)"
                        R"("reason":"still connecting"}])") != std::string::npos);
  seen.got.clear();
  w.up.send_on(lane, R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{}})");
  REQUIRE(seen.got.size() == 1);
  CHECK(seen.got[0].find(R"("id":7,"result")") != std::string::npos);
}

TEST_CASE(
    "control: an invalid list changes nothing; values are neither expanded nor quoted in errors") {
  ControlWorld w;
  seen.open();
  std::string why;
  for (const char *text : {"", "{}", "[1]", "[", "[]}", R"([],"more":[])", "[]} //", "nonsense"}) {
    INFO(text);
    CHECK(seen.replace(text, &why) == BH_E_INVALID);
    CHECK_FALSE(why.empty());
  }
  seen.replace(R"([{"name":"g","command":"fake","env":{"T":"${env:SECRET-canary}"}},
                   {"name":"bad","url":"ftp://canary:pw@x/","headers":{"X":"canary"}}])");
  const std::string report = w.report();
  CHECK(report.find("canary") == std::string::npos);
  CHECK(report.find(R"("refused":[{"name":"bad")") != std::string::npos);
  CHECK(seen.servers().find(R"("name":"g")") != std::string::npos);
  for (int i = 0; i < 16; ++i) CHECK(seen.replace("[]") == BH_PENDING);
  CHECK(seen.replace("[]") == BH_E_LIMIT);
  for (int i = 0; i < 16; ++i) w.report();
}

TEST_CASE(
    "control: items require an initialized session of the plugin and the servers' first lists") {
  ControlWorld w;
  std::string items;
  CHECK(seen.items(BH_LIST_TOOLS, &items) == BH_STALE);
  bh_peer peer{};
  peer.size = sizeof peer;
  REQUIRE(seen.transport()->session_open(seen.host->ctx, &peer, &seen.session, nullptr) == BH_OK);
  CHECK(seen.items(BH_LIST_TOOLS, &items) == BH_E_UNAVAILABLE);
  seen.open();
  CHECK(seen.items(99, &items) == BH_E_INVALID);
  REQUIRE(seen.items(BH_LIST_PROMPTS, &items) == BH_OK);
  CHECK(items == "[]");
  w.up.hold_tools = true;
  seen.replace(R"([{"name":"g","command":"fake"}])", nullptr, 5000);
  w.turn(10);
  CHECK(seen.items(BH_LIST_TOOLS, &items) == BH_WOULD_BLOCK);
  Client other(*w.host);
  const bh_session mine = std::exchange(seen.session, seen.session + 1);
  CHECK(seen.items(BH_LIST_TOOLS, &items) == BH_STALE);
  seen.session = mine;
}
