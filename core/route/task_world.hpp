// Test fixture for a complete Router with servers that have tasks, behind a fake connector, and
// clients of both protocol generations, with and without connections. The servers answer their
// opening requests and lists; the test answers everything else.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "reactor/reactor.hpp"
#include "route/router.hpp"

namespace bulkhead {

struct TaskWorld : private ClientEnd {
  // One server: the requests that it has received, except those that the fixture answers, and the
  // responses to its own requests.
  struct Server {
    TaskWorld *world = nullptr;
    bool stateless = false;
    std::string revision{}, capabilities{};  // unless it is stateless
    bh_lane lane = 0;                        // on which the last request arrived
    std::vector<std::string> got{}, replies{};
    std::string_view last(std::string_view member) const {
      return mcp::member(got.at(got.size() - 1), member);
    }
  };

  Profile profile;
  std::unique_ptr<Reactor> reactor = *Reactor::create();
  std::unique_ptr<Router> router;
  std::map<std::string, Server> servers;
  std::string log, got;    // got: the last message to a client
  bh_session got_for = 0;  // the client's session
  std::size_t answers = 0;
  bh_session session = 0;
  std::uint64_t stream = 0;

  // `specs` are names of servers; those that begin with "m" are of 2026-07-28, those that begin
  // with "o" of 2025-06-18, and all others of 2025-11-25. Those that begin with "p" do not declare
  // tasks, those that begin with "n" do not declare tasks/cancel, and those that begin with "each"
  // run per client. Those that begin with "mfixed" have static roots, and those that begin with
  // "mown" those of each client. `revision` is that of the client with a session.
  explicit TaskWorld(const std::vector<std::string> &specs, const bh_policy *policy = nullptr,
                     const std::string &revision = "2025-11-25") {
    RouterHooks hooks;
    hooks.log = [this](std::int32_t, std::string_view text) { log.append(text).append("\n"); };
    router = std::make_unique<Router>(profile, *reactor, std::move(hooks));
    if (policy != nullptr) router->parts().policy.gate.use(policy, this);
    for (const std::string &name : specs) {
      Server &server = servers[name];
      server.world = this;
      server.stateless = name.starts_with("m");
      server.revision = name.starts_with("o") ? "2025-06-18" : "2025-11-25";
      server.capabilities = name.starts_with("p") ? R"({"tools":{}})"
                            : name.starts_with("n")
                                ? R"({"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}})"
                                : R"({"tools":{},"tasks":{"cancel":{},)"
                                  R"("requests":{"tools":{"call":{}}}}})";
      ServerDef def;
      def.name = name;
      if (name.starts_with("each")) def.session = SessionScope::per_client;
      if (name.starts_with("mfixed")) {
        def.roots = RootsMode::static_list;
        def.root_folders = {"/a"};
      } else if (name.starts_with("mown")) {
        def.roots = RootsMode::per_client;
      }
      def.protocol = server.stateless        ? ProtocolPin::v2026_07_28
                     : name.starts_with("o") ? ProtocolPin::v2025_06_18
                                             : ProtocolPin::v2025_11_25;
      auto made = std::make_unique<Upstream>(router->parts().servers.lanes, def);
      made->connector = &connector();
      made->self = &server;
      router->parts().servers.list.add(std::move(made));
    }
    router->start(true);
    session = open_client(revision);
  }
  ~TaskWorld() override {
    router->parts().clients.sessions.end_all("the end");
    router->close_lanes();
  }

  // ---- clients with a session; ask() and others use that of `session` ----
  bh_session open_client(const std::string &revision = "2025-11-25") {
    const bh_session opened = open();
    const bh_session current = std::exchange(session, opened);
    ask(R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":")" +
        revision + R"(","capabilities":{"elicitation":{},"sampling":{},"roots":{}},)" +
        R"("clientInfo":{"name":"c","version":"1"}}})");
    ask(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
    reactor->poll(0);
    session = current;
    return opened;
  }
  void ask(std::string_view message) {
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    router->parts().clients.sessions.deliver(session, 0, message, &delivery);
  }
  void ask(std::string_view method, std::string_view params) {
    got.clear();
    ask(request(method, params));
  }
  // Opens another client connection (a pipe).
  bh_session open() {
    bh_session opened = 0;
    bh_peer peer{};
    peer.size = sizeof peer;
    REQUIRE(router->parts().clients.sessions.open(*this, peer, &opened, nullptr) == BH_OK);
    return opened;
  }
  void close(bh_session connection) {
    router->parts().clients.sessions.close(connection, BH_SESSION_GONE);
  }
  // Sends a request of 2026-07-28 on a connection.
  void ask_on(bh_session connection, std::string_view method, std::string_view params,
              const std::string &capabilities = "{}") {
    got.clear();
    const std::string message = request(method, members(capabilities, params));
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    router->parts().clients.sessions.deliver(connection, 0, message, &delivery);
  }
  // Returns the number of connections to a server.
  std::size_t lanes(std::string_view server) const {
    return router->parts().servers.list.find(server)->lanes().size();
  }

  // ---- clients of 2026-07-28, which declare the extension by default ----
  void ask_alone(
      std::string_view method, std::string_view params, std::string_view principal = "ada",
      const std::string &capabilities = R"({"extensions":{"io.modelcontextprotocol/tasks":{}}})") {
    got.clear();
    const std::string message = request(method, members(capabilities, params));
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.transport = bh::str("http");
    peer.principal = bh::str(principal);
    bh_incoming in{};
    in.size = sizeof in;
    in.peer = &peer;
    in.stream = ++stream;
    in.message = bh::str(message);
    bh_delivery out{};
    out.size = sizeof out;
    REQUIRE(router->parts().clients.sessions.deliver_message(*this, in, &out) == BH_OK);
  }

  // Sends a request from a server to the gateway.
  void server_asks(const std::string &name, std::string_view method, std::string_view params) {
    router->parts().servers.wires.message(servers.at(name).lane, 0,
                                          std::string(R"({"jsonrpc":"2.0","id":"q","method":")")
                                              .append(method)
                                              .append(R"(","params":)")
                                              .append(params)
                                              .append("}"));
  }
  // Answers the last request that a server has received. `member` is "result" or "error".
  void answer(const std::string &name, std::string_view member, std::string_view value) {
    const Server &server = servers.at(name);
    const std::string message = std::string(R"({"jsonrpc":"2.0","id":)")
                                    .append(server.last("id"))
                                    .append(",\"")
                                    .append(member)
                                    .append("\":")
                                    .append(value)
                                    .append("}");
    router->parts().servers.wires.message(server.lane, 0, message);
  }
  void result(const std::string &name, std::string_view value) { answer(name, "result", value); }
  // Sends a request from the server to the gateway, with the id "q", and _meta that relates the
  // request to one of the server's tasks. `task` is the server's id, a JSON string.
  void request_of(const std::string &name, std::string_view method, std::string_view task,
                  std::string_view params = {}) {
    got.clear();
    got_for = 0;
    const std::string message =
        R"({"jsonrpc":"2.0","id":"q","method":")" + std::string(method) + R"(","params":{)" +
        std::string(params) +
        R"("_meta":{"x":1,"io.modelcontextprotocol/related-task":{"taskId":)" + std::string(task) +
        "}}}}";
    router->parts().servers.wires.message(servers.at(name).lane, 0, message);
  }
  // Returns a member of the last response that a server has received to a request of its own.
  std::string replied(const std::string &name, std::initializer_list<std::string_view> path) const {
    const auto &replies = servers.at(name).replies;
    return replies.empty() ? std::string() : std::string(at(replies.back(), path));
  }
  // Returns a member of the last request that a server has received.
  std::string sent(const std::string &name, std::initializer_list<std::string_view> path) const {
    return std::string(at(servers.at(name).got.back(), path));
  }
  // Returns a member of the last message to a client.
  std::string told(std::initializer_list<std::string_view> path) const {
    return std::string(at(got, path));
  }
  static std::string_view at(std::string_view text, std::initializer_list<std::string_view> path) {
    for (const std::string_view name : path) {
      if (text.starts_with('{')) text = mcp::member(text, name);
    }
    return text;
  }
  // Runs the event loop until the server has received `count` requests. Fails after about 20 s.
  void await(const std::string &name, std::size_t count) {
    for (int i = 0; i < 2'000 && servers.at(name).got.size() < count; ++i) reactor->poll(10);
    REQUIRE(servers.at(name).got.size() == count);
  }

 private:
  static std::string request(std::string_view method, std::string_view params) {
    return std::string(R"({"jsonrpc":"2.0","id":1,"method":")")
        .append(method)
        .append(R"(","params":{)")
        .append(params)
        .append("}}");
  }
  // Returns the members of params, with the `_meta` of a request of 2026-07-28.
  static std::string members(const std::string &capabilities, std::string_view params) {
    std::string out = R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                      R"("io.modelcontextprotocol/clientCapabilities":)" +
                      capabilities + "}";
    return out.append(params.empty() ? "" : ",").append(params);
  }
  static const bh_connector &connector() {
    static const bh_connector table = {
        sizeof(bh_connector),
        0,
        [](void *, bh_lane lane, const bh_lane_info *, void **out, bh_error *) -> bh_status {
          *out = new bh_lane(lane);
          return BH_OK;
        },
        [](void *self, void *lane, const bh_lane_message *message, bh_error *) -> bh_status {
          std::string text;
          for (std::uint32_t i = 0; i < message->part_count; ++i) {
            text += bh::view(message->parts[i]);
          }
          auto &server = *static_cast<Server *>(self);
          if (message->kind == BH_LANE_RESPONSE) server.replies.push_back(text);
          if (message->kind != BH_LANE_REQUEST) return BH_OK;
          server.lane = *static_cast<bh_lane *>(lane);
          server.world->received(server, text);
          return BH_OK;
        },
        [](void *, void *, bh_str) {},
        [](void *, void *, std::uint64_t) {},
        [](void *self, void *lane) {
          const std::unique_ptr<bh_lane> closed(static_cast<bh_lane *>(lane));
          static_cast<Server *>(self)->world->router->parts().servers.wires.closed(*closed);
        }};
    return table;
  }
  void received(Server &server, const std::string &text) {
    const std::string_view method = mcp::member(text, "method");
    std::string result;
    if (method == R"("initialize")") {
      result = R"({"protocolVersion":")" + server.revision + R"(","capabilities":)" +
               server.capabilities + R"(,"serverInfo":{"name":"s","version":"1"}})";
    } else if (method == R"("server/discover")") {
      result = R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{)"
               R"("tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}})";
    } else if (method == R"("tools/list")") {
      result = server.stateless
                   ? R"({"resultType":"complete","tools":[{"name":"job","inputSchema":{}}]})"
                   : R"({"tools":[{"name":"job","inputSchema":{},"execution":{)"
                     R"("taskSupport":"optional"}},{"name":"plain","inputSchema":{}}]})";
    }
    server.got.push_back(text);
    if (result.empty()) return;
    const std::string message = std::string(R"({"jsonrpc":"2.0","id":)")
                                    .append(server.last("id"))
                                    .append(R"(,"result":)")
                                    .append(result)
                                    .append("}");
    server.got.pop_back();
    router->parts().servers.wires.message(server.lane, 0, message);
  }
  void send(const bh_outgoing &message) override {
    got.clear();
    for (std::uint32_t i = 0; i < message.part_count; ++i) got += bh::view(message.parts[i]);
    got_for = message.session;
    ++answers;
  }
  void session_ended(bh_session, std::string_view) override {}
};

}  // namespace bulkhead
