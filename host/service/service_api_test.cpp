// Tests both sides of the service API: the conversion of HTTP requests to typed requests, and how
// the gateway rejects invalid typed requests.
#include "service/service_api.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <optional>

#include "common/test_folder.hpp"
#include "profile/server_entry.hpp"
#include "service/control_compartment.hpp"
#include "service/service.hpp"
#include "service/service_socket.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

struct World {
  TestFolder folder;
  std::unique_ptr<Reactor> reactor = std::move(*Reactor::create());
  std::unique_ptr<ServiceSocket> socket = std::move(*ServiceSocket::open(folder / "s"));

  void turn() const {
    for (int i = 0; i < 10; ++i) reactor->poll(0);
  }
  // Sends a request and returns everything that is received until the connection is closed.
  std::string ask(std::string_view request) const {
    const int fd = connect();
    REQUIRE(::send(fd, request.data(), request.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(request.size()));
    turn();
    return rest(fd);
  }
  int connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, socket->path().data(), socket->path().size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(::connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0);
    return fd;
  }
  static std::string rest(int fd) {
    std::string out;
    char buffer[4096];
    for (ssize_t n = 0; (n = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
      out.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(fd);
    return out;
  }
};

std::string request(std::string_view method, std::string_view path, std::string_view body = "") {
  std::string out(method);
  out.append(" ").append(path).append(" HTTP/1.1\r\nContent-Length: ");
  return out.append(std::to_string(body.size())).append("\r\n\r\n").append(body);
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

TEST_CASE("each path sends its typed request and returns the response") {
  World world;
  struct Asked {
    ServiceRequest request;
    std::string value;
  };
  std::optional<Asked> asked;
  ServiceAnswer answer;
  ServiceApi api(
      *world.reactor, world.socket->fd(),
      [](int, const std::function<void(bool)> &done) { done(true); },
      [&](ServiceRequest what, std::string value, const ServiceReply &reply) {
        asked = {what, std::move(value)};
        reply(answer);
      });

  ServiceStatus status;
  status.process.version = "1.2";
  answer = answer_with(status);
  CHECK(has(world.ask(request("GET", "/status?x=1")), R"("version":"1.2")"));
  CHECK(asked->request == ServiceRequest::status);

  status.host.counters = {{"calls", 7},
                          {"my.book.records_written", 5},
                          {"policy_timeouts", 0},
                          {"approvals_waiting", 2}};
  PluginStatus book;
  book.id = "my.book";
  status.host.plugins = {book};
  ServerStatus up;
  up.name = "a\"b";
  up.state = ServerState::ready;
  up.tools = 3;
  status.host.servers = {up};
  CompartmentStatus runs, ends;
  runs.name = ends.name = "mine";
  runs.state = "running";
  ends.state = "draining";
  status.process.compartments = {runs, ends};
  answer = answer_with(status);
  const std::string metrics = world.ask(request("GET", "/metrics"));
  CHECK(has(metrics, "Content-Type: text/plain; version=0.0.4"));
  CHECK(has(metrics, "# TYPE bulkhead_calls_total counter\nbulkhead_calls_total 7\n"));
  CHECK(has(metrics, "bulkhead_plugin_records_written_total{plugin=\"my.book\"} 5\n"));
  CHECK(has(metrics, "bulkhead_server_tools{server=\"a\\\"b\"} 3\n"));
  CHECK(has(metrics, "bulkhead_policy_timeouts_total 0\n"));
  CHECK(has(metrics, "bulkhead_compartment_running{compartment=\"mine\"} 1\n"));
  CHECK(!has(metrics, "bulkhead_compartment_running{compartment=\"mine\"} 0\n"));
  CHECK(has(metrics, "# TYPE bulkhead_approvals_waiting gauge\nbulkhead_approvals_waiting 2\n"));
  CHECK(asked->request == ServiceRequest::status);

  Reloaded done;
  done.report.added = {"a", "b"};
  done.report.files = {"tools.a: file changed; new version runs"};
  done.not_connected = {{"b", "no \"such\" command"}};
  answer = answer_with(done);
  const std::string reloaded = world.ask(request("POST", "/reload-config"));
  CHECK(has(reloaded, R"("added":["a","b"],"changed":[])"));
  CHECK(has(reloaded, R"("files":["tools.a: file changed; new version runs"])"));
  CHECK(has(reloaded, R"("not_connected":[{"name":"b","reason":"no \"such\" command"}])"));
  CHECK(asked->request == ServiceRequest::reload);
  CHECK(has(reloaded, R"("success":true,"reloaded":1,)"));
  CHECK(has(reloaded, R"("message":null,"applied":"all")"));
  // If a change requires a restart, the reload is applied only partially or not at all.
  done.report.needs_restart = {"policies.p: needs a restart"};
  done.report.policy_mark = {2, "d1", 3, {"3 rules added"}};
  done.report.policy = done.report.policy_mark.changes;
  answer = answer_with(done);
  const std::string in_part = world.ask(request("POST", "/reload-config"));
  CHECK(has(in_part, R"("success":false,"reloaded":1,)"));
  CHECK(has(in_part, R"("applied":"part")"));
  CHECK(has(in_part, R"("policy":{"generation":2,"rules":3,"digest":"d1",)"
                     R"("changes":["3 rules added"]})"));
  Reloaded nothing;
  nothing.report.needs_restart = done.report.needs_restart;
  answer = answer_with(nothing);
  const std::string none = world.ask(request("POST", "/reload-config"));
  CHECK(has(none, R"("success":false,"reloaded":0,)"));
  CHECK(has(none, R"("applied":"none")"));

  const ConnectorItem item{"a", "user", "/f", true, R"({"type":"stdio"})"};
  answer = answer_with(item);
  CHECK(has(world.ask(request("POST", "/mcp/connectors", R"({"id":"a","command":"x"})")),
            R"({"id":"a","source":"user","source_profile":"/f","direct":true,"editable":true,)"
            R"("server":{"type":"stdio"}})"));
  CHECK(asked->request == ServiceRequest::add_connector);
  ServerEntry entry;
  REQUIRE(from_bytes(asked->value, &entry));
  CHECK(entry.id == "a");
  CHECK(entry.values.size() == 2);

  answer = answer_with(ConnectorList{"builtin", {item, item}});
  CHECK(has(world.ask(request("GET", "/mcp/connectors")), R"("servers":[{"id":"a",)"));
  CHECK(asked->request == ServiceRequest::list_connectors);

  answer = answer_with(ConnectorRemoved{"builtin", "a"});
  CHECK(
      has(world.ask(request("DELETE", "/mcp/connectors/a")), R"("server_id":"a","removed":true)"));
  CHECK(asked->request == ServiceRequest::remove_connector);
  CHECK(asked->value == to_bytes(std::string("a")));

  PluginSwapped swapped{"mine", "my-tools", "1.0", "aa", "2.0", "bb", 7};
  answer = answer_with(swapped);
  CHECK(has(world.ask(request("POST", "/plugins/swap/mine", R"({"file":"/x/my-tools.so"})")),
            R"({"instance":"mine","plugin":"my-tools","from":{"version":"1.0","sha256":"aa"},)"
            R"("to":{"version":"2.0","sha256":"bb"},"rollback_until":7})"));
  PluginSwapRequest change;
  CHECK(asked->request == ServiceRequest::swap_plugin);
  REQUIRE(from_bytes(asked->value, &change));
  CHECK((change.id == "mine" && change.file == "/x/my-tools.so" && !change.rollback));
  for (const char *body : {"", "{}"}) {
    world.ask(request("POST", "/plugins/swap/mine", body));
    REQUIRE(from_bytes(asked->value, &change));
    CHECK((change.id == "mine" && change.file.empty() && !change.rollback));
  }
  swapped.rollback_until_ms = 0;
  answer = answer_with(swapped);
  CHECK(!has(world.ask(request("POST", "/plugins/rollback/mine")), "rollback_until"));
  REQUIRE(from_bytes(asked->value, &change));
  CHECK((change.id == "mine" && change.rollback));

  // Invalid requests are not forwarded.
  asked.reset();
  for (const char *body : {"[]", "{", R"({"file":"x.so"})", R"({"file":7})", R"({"file":""})"}) {
    INFO(body);
    CHECK(has(world.ask(request("POST", "/plugins/swap/mine", body)), " 400 "));
  }
  for (const char *path : {"/", "/statu", "/status/", "/mcp/connectors/", "/mcp/connectors/a/b"}) {
    INFO(path);
    CHECK(has(world.ask(request("GET", path)), " 404 "));
  }
  CHECK(has(world.ask(request("PUT", "/mcp/connectors")), "supports GET and POST"));
  CHECK(has(world.ask(request("GET", "/mcp/connectors/a")), "supports DELETE"));
  CHECK(has(world.ask(request("POST", "/mcp/connectors", "{\"id\":")), " 400 "));
  CHECK_FALSE(asked.has_value());
}

TEST_CASE("each error code has its HTTP status") {
  World world;
  ServiceAnswer answer;
  ServiceApi api(
      *world.reactor, world.socket->fd(),
      [](int, const std::function<void(bool)> &done) { done(true); },
      [&](ServiceRequest, const std::string &, const ServiceReply &reply) { reply(answer); });
  const std::pair<bh_status, const char *> kinds[] = {
      {BH_E_INVALID, " 400 "}, {BH_E_NOT_FOUND, " 404 "}, {BH_E_DENIED, " 409 "},
      {BH_E_LIMIT, " 503 "},   {BH_E_INTERNAL, " 500 "},
  };
  for (const auto &[code, status] : kinds) {
    answer = refuse_with(code, "be\"cause");
    const std::string said = world.ask(request("GET", "/status"));
    CHECK(has(said, status));
    CHECK(has(said, R"({"error":"be\"cause"})"));
  }
  answer = refuse_with(BH_E_INTERNAL, "wrong", {"line 1", "line 2"});
  const std::string said = world.ask(request("POST", "/reload-config"));
  CHECK(has(said, " 500 "));
  CHECK(has(said, R"({"session_id":"gateway","message":"line 2"}],"message":"wrong"})"));
  answer = {BH_OK, "rubbish"};
  CHECK(has(world.ask(request("GET", "/status")), " 500 "));
}

TEST_CASE("the control compartment forwards requests and rejects peers without permission") {
  struct Supervisor final : link::Channel::Receiver {
    bool may = true;
    std::vector<std::uint16_t> kinds;
    void frame(link::Channel &channel, const link::Frame &frame, std::string_view,
               OwnedFd fd) override {
      link::Frame answer = frame;
      if (frame.kind == static_cast<std::uint16_t>(ServiceRequest::metrics_listener)) {
        // In this test, /metrics over TCP is not configured.
        answer.code = static_cast<std::uint32_t>(BH_E_NOT_FOUND);
        channel.send(answer);
        return;
      }
      kinds.push_back(frame.kind);
      if (frame.kind == static_cast<std::uint16_t>(ServiceRequest::admit)) {
        CHECK(fd);
        answer.code = static_cast<std::uint32_t>(may ? BH_OK : BH_E_DENIED);
        channel.send(answer);
        return;
      }
      link::Frame other = frame;  // a response with an unknown request number
      other.exchange += 1'000;
      channel.send(other, "rubbish");
      channel.send(answer, to_bytes(ServiceStatus{}));
    }
    void closed(link::Channel &, std::string_view) override {}
  } supervisor;
  World world;
  auto pair = link::socket_pair();
  REQUIRE(pair);
  auto channel =
      std::make_unique<link::Channel>(*world.reactor, std::move(pair->first), supervisor,
                                      max_service_frame_bytes, max_service_queue_bytes, true);
  bool ended = false;
  ControlCompartment control(*world.reactor, OwnedFd(::dup(world.socket->fd())),
                             std::move(pair->second), [&] { ended = true; });
  CHECK(has(world.ask(request("GET", "/status")), "HTTP/1.1 200 OK"));
  CHECK(supervisor.kinds == std::vector<std::uint16_t>{1, 2});
  supervisor.may = false;
  CHECK(world.ask(request("GET", "/status")).empty());
  CHECK(supervisor.kinds == std::vector<std::uint16_t>{1, 2, 1});
  CHECK_FALSE(ended);
  channel.reset();
  world.turn();
  CHECK(ended);
}

TEST_CASE("the gateway rejects invalid requests") {
  World world;
  Service service(*world.reactor, Arguments(), Transports::served, ServiceBackend());
  std::vector<bh_status> codes;
  const auto ask = [&](int what, std::string_view value) {
    service.ask(static_cast<ServiceRequest>(what), value,
                [&](const ServiceAnswer &answer) { codes.push_back(answer.code); });
  };
  ask(static_cast<int>(ServiceRequest::add_connector), "");
  ask(static_cast<int>(ServiceRequest::add_connector), std::string(100, '\xff'));
  ask(static_cast<int>(ServiceRequest::remove_connector), "\x05\0\0\0a");
  ask(static_cast<int>(ServiceRequest::swap_plugin), "\x05");
  ask(static_cast<int>(ServiceRequest::swap_plugin), to_bytes(PluginSwapRequest{}));
  ask(static_cast<int>(ServiceRequest::admit), "");
  ask(999, "");
  CHECK(codes == std::vector<bh_status>{BH_E_INVALID, BH_E_INVALID, BH_E_INVALID, BH_E_INVALID,
                                        BH_E_UNSUPPORTED, BH_E_UNSUPPORTED, BH_E_UNSUPPORTED});
}

TEST_CASE("a reload reports which new versions of plugins run, are starting or have failed") {
  World world;
  const std::string config = world.folder / "gateway.toml";
  std::ofstream(config) << "[limits]\ncall_timeout_ms = 50000\n";
  Arguments arguments;
  arguments.config = config;
  ApplyReport report;
  report.changed = {"runs", "idle", "starts", "start", "fails", "odd"};
  for (const std::string &name : report.changed) {
    report.files.push_back("tools." + name + ": file changed; new version runs");
  }
  report.files.push_back("policies.starts: file changed; new version runs");
  HostStatus host;
  const auto add = [&](const std::string &name, ServerState state, const std::string &reason = "") {
    ServerStatus server;
    server.name = name;
    server.state = state;
    server.reason = reason;
    host.servers.push_back(server);
  };
  add("runs", ServerState::ready);
  add("idle", ServerState::idle);
  add("starts", ServerState::connecting);
  add("start", ServerState::ready);
  add("fails", ServerState::failed, "exit status 1");
  add("odd", ServerState::connecting, "its last start failed");
  add("other", ServerState::connecting);  // is not part of the change
  int looks = 0;
  ServiceBackend backend;
  backend.apply = [&](const LoadedProfile &, const std::function<void(Result<ApplyReport>)> &done) {
    done(report);
  };
  backend.look = [&](const std::function<void(const HostStatus &)> &done) {
    host.settled = host.drained = ++looks == 3;
    done(host);
  };
  backend.log = [](LogLevel, std::string_view) {};
  Service service(*world.reactor, arguments, Transports::served, backend);
  std::optional<ServiceAnswer> answer;
  service.ask(ServiceRequest::reload, "", [&](const ServiceAnswer &it) { answer = it; });
  while (!answer.has_value()) world.reactor->poll(100);
  CHECK(looks == 3);
  INFO(answer->value);
  REQUIRE(answer->code == BH_OK);
  Reloaded reloaded;
  REQUIRE(from_bytes(answer->value, &reloaded));
  CHECK(reloaded.report.files ==
        std::vector<std::string>{"tools.runs: file changed; new version runs",
                                 "tools.idle: file changed; new version runs",
                                 "tools.starts: file changed; new version is starting",
                                 "tools.start: file changed; new version runs",
                                 "tools.fails: file changed; new version does not run",
                                 "tools.odd: file changed; new version does not run",
                                 "policies.starts: file changed; new version runs"});
  CHECK(reloaded.not_connected ==
        std::vector<std::pair<std::string, std::string>>{{"starts", "still connecting"},
                                                         {"fails", "exit status 1"},
                                                         {"odd", "its last start failed"}});
}
