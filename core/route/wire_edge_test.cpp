// Tests messages from servers behind connectors: each message affects only its own call, lane or
// client.
#include "route/wire_edge.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "route/wire_world.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;

std::string result_of(std::uint64_t number, const std::string &result) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(number) + R"(,"result":)" + result + "}";
}

std::string_view at(std::string_view text, std::initializer_list<std::string_view> path) {
  for (const std::string_view name : path) text = mcp::member(text, name);
  return text;
}

struct TwoServers : WireWorld {
  FakeServer a, b;
  std::unique_ptr<Upstream> servers[2] = {behind(a, server_named("a")),
                                          behind(b, server_named("b"))};
  WireLane &lane_a = start(0), &lane_b = start(1);
  Session &first = client_of(), &second = client_of();

  TwoServers() {
    connects(a, R"([{"name":"t"}])");
    connects(b, R"([{"name":"t"}])");
    REQUIRE(lane_a.state() == LaneState::ready);
    REQUIRE(lane_b.state() == LaneState::ready);
  }
  ~TwoServers() override {
    for (const auto &server : servers) {
      while (!server->lanes().empty()) server->remove(server->lanes().back().get());
    }
  }
  WireLane &start(std::size_t index) {
    Lane *made = servers[index]->lane_for(cap::sampling | cap::elicitation, 0);
    made->start();
    return static_cast<WireLane &>(*made);
  }
  Session &client_of() {
    Session &s = open_session(sessions, client);
    s.caps = cap::sampling | cap::elicitation;
    return s;
  }
  Texts answers_to(const Session &s) const { return sent_to(s, BH_OUT_ANSWER); }
  Texts errors_to(const Session &s) const {
    Texts out;
    std::string scratch;
    for (const std::string &text : answers_to(s)) {
      out.emplace_back(mcp::unquote(at(text, {"error", "message"}), &scratch));
    }
    return out;
  }
};

// A lane of a server of 2026-07-28.
struct WithoutSessions : WireWorld {
  FakeServer server;
  std::unique_ptr<Upstream> server_upstream = behind(server, [] {
    ServerDef def = server_named("c");
    def.protocol = ProtocolPin::v2026_07_28;
    return def;
  }());
  WireLane &server_lane = static_cast<WireLane &>(*server_upstream->lane_for(0, 0));
  View view;

  WithoutSessions() {
    view.lanes = {&server_lane};
    server_lane.start();
    answers_with(server, "server/discover",
                 R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":)"
                 R"({"tools":{"listChanged":true},"resources":{"subscribe":true}}})");
    answers_with(server, "tools/list", R"({"resultType":"complete","tools":[{"name":"t"}]})");
    answers_with(server, "resources/list", R"({"resultType":"complete","resources":[]})");
    answers_with(server, "resources/templates/list",
                 R"({"resultType":"complete","resourceTemplates":[]})");
    REQUIRE(server_lane.state() == LaneState::ready);
  }
  ~WithoutSessions() override { server_upstream->remove(&server_lane); }
  void acknowledges(const std::string &listen, const std::string &uris) {
    sends(server,
          R"({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":)"
          R"({"notifications":{"resourceSubscriptions":)" +
              uris + R"(},"_meta":{"io.modelcontextprotocol/subscriptionId":)" + listen + "}}}");
  }
  std::string newest_listen() const { return listen_ = server.number_of("subscriptions/listen"); }
  // Waits for a listen request that is newer than the result of newest_listen(). Returns its id.
  std::string next_listen() const {
    REQUIRE(wait_for(*loop, [&] { return server.number_of("subscriptions/listen") != listen_; }));
    return newest_listen();
  }
  // The URI is also the request's id.
  void subscribe(Session &s, const std::string &uri) {
    const Scanned m(R"({"jsonrpc":"2.0","id":")" + uri +
                    R"(","method":"resources/subscribe","params":{"uri":")" + uri + "\"}}");
    Incoming request{{s.handle, 7, 0}, m.get(), 1};
    CallInHand hand{request.message, {&server_lane, {}, m.scan.uri}, {}, {}};
    hand.target.resolved.original_token = "\"" + uri + "\"";
    s.view = &view;
    calls.begin(s, request, hand);
  }

 private:
  mutable std::string listen_;
};

const std::string sampling =
    R"({"jsonrpc":"2.0","id":"ask","method":"sampling/createMessage","params":{}})";

}  // namespace

TEST_CASE("a response reaches the call with its number and has the client's id") {
  TwoServers w;
  const std::uint64_t one = w.call(w.first, w.lane_a, w.a, "\"x\"");
  const std::uint64_t two = w.call(w.second, w.lane_a, w.a, "\"x\"");
  const std::uint64_t three = w.call(w.first, w.lane_b, w.b, "3");
  REQUIRE((one != 0 && two != 0 && three != 0));
  w.sends(w.b, result_of(three, R"({"n":3})"));
  w.sends(w.a, result_of(two, R"({"n":2})"));
  w.sends(w.a, R"({"jsonrpc":"2.0","id":)" + std::to_string(one) +
                   R"(,"error":{"code":-7,"message":"no"}})");
  CHECK(w.answers_to(w.first) ==
        Texts{R"({"jsonrpc":"2.0","id":3,"result":{"n":3}})",
              R"({"jsonrpc":"2.0","id":"x","error":{"code":-7,"message":"no"}})"});
  CHECK(w.answers_to(w.second) == Texts{R"({"jsonrpc":"2.0","id":"x","result":{"n":2}})"});
  CHECK(w.exchange_table.size() == 0);
  CHECK(w.counters.stray_answers == 0);
}

TEST_CASE("a response with another connection's number is dropped and counted") {
  TwoServers w;
  const std::uint64_t own = w.call(w.first, w.lane_a, w.a, "1");
  const std::uint64_t others = w.call(w.second, w.lane_b, w.b, "2");
  w.sends(w.a, result_of(own + 1'000'000, "{}"));
  w.sends(w.a, result_of(others, R"({"stolen":true})"));
  w.sends(w.a, R"({"jsonrpc":"2.0","id":"text","result":{}})");
  w.sends(w.a, R"({"jsonrpc":"2.0","id":"text","result":{}})", own);
  w.edge.message(w.a.handle() + 1'000, 0, result_of(own, "{}"));  // unknown connection
  CHECK(w.answers_to(w.first).empty());
  CHECK(w.answers_to(w.second).empty());
  CHECK(w.counters.stray_answers == 4);
  w.sends(w.a, result_of(own, "{}"));
  w.sends(w.b, result_of(others, "{}"));
  w.sends(w.b, result_of(others, "{}"));  // duplicate response
  CHECK(w.answers_to(w.first).size() == 1);
  CHECK(w.answers_to(w.second).size() == 1);
  CHECK(w.counters.stray_answers == 5);
}

TEST_CASE("an error without a known id belongs to the exchange of its stream") {
  TwoServers w;
  const std::uint64_t number = w.call(w.first, w.lane_a, w.a, "1");
  const std::string id = GENERATE(as<std::string>{}, "null", "\"other\"");
  const std::string error =
      R"({"jsonrpc":"2.0","id":)" + id + R"(,"error":{"code":-32700,"message":"cannot read it"}})";
  w.sends(w.a, error);
  w.sends(w.b, error, number);
  CHECK(w.answers_to(w.first).empty());
  CHECK(w.counters.stray_answers == 2);
  w.sends(w.a, error, number);
  CHECK(w.errors_to(w.first) == Texts{"cannot read it"});
}

TEST_CASE(
    "a late response to a cancelled call reaches no client, and messages are attributed again") {
  TwoServers w;
  const std::uint64_t number = w.call(w.first, w.lane_a, w.a, "1");
  const std::uint64_t other = w.call(w.second, w.lane_a, w.a, "2");
  const Scanned cancelled(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  w.ends.cancel(*w.first.open_calls.head, cancelled.get());
  CHECK(at(w.a.notifications.back(), {"params", "requestId"}) == std::to_string(number));
  // Both the cancelled call and the second client's call may have caused this request.
  w.sends(w.a, sampling);
  CHECK(w.sent_to(w.second, BH_OUT_ASK).empty());
  CHECK(w.counters.refused_asks == 1);
  w.sends(w.a, result_of(number, R"({"late":true})"));
  CHECK(w.counters.stray_answers == 1);
  CHECK(w.answers_to(w.first) == Texts{""});  // the empty message releases the client's slot
  w.sends(w.a, sampling);
  CHECK(w.sent_to(w.first, BH_OUT_ASK).empty());
  CHECK(w.sent_to(w.second, BH_OUT_ASK).size() == 1);
  w.sends(w.a, result_of(other, "{}"));
  CHECK(w.answers_to(w.second).size() == 1);
}

TEST_CASE("a server-initiated request reaches the client to which it can be attributed") {
  TwoServers w;
  w.call(w.first, w.lane_a, w.a, "1");
  const std::uint64_t number = w.call(w.second, w.lane_b, w.b, "2");
  SECTION("by the only client with calls on the connection") {
    w.sends(w.b, sampling);
  }
  SECTION("by the stream of its call, even if other calls are in flight") {
    w.call(w.first, w.lane_b, w.b, "3");
    w.sends(w.b, sampling, number);
  }
  const Texts asks = w.sent_to(w.second, BH_OUT_ASK);
  REQUIRE(asks.size() == 1);
  CHECK(w.sent_to(w.first, BH_OUT_ASK).empty());
  const Scanned answer(R"({"jsonrpc":"2.0","id":)" + std::string(mcp::member(asks[0], "id")) +
                       R"(,"result":{"role":"user"}})");
  w.asks.answered(w.second, answer.get());
  CHECK(w.b.responses == Texts{R"({"jsonrpc":"2.0","id":"ask","result":{"role":"user"}})"});
  CHECK(w.a.responses.empty());
}

TEST_CASE(
    "a server-initiated request that cannot be attributed to a client gets an error response") {
  TwoServers w;
  SECTION("two clients have calls there") {
    w.call(w.first, w.lane_a, w.a, "1");
    w.call(w.second, w.lane_a, w.a, "2");
    w.sends(w.a, sampling);
  }
  SECTION("no call is in flight") {
    w.sends(w.a, sampling);
  }
  SECTION("its stream belongs to another connection") {
    w.sends(w.a, sampling, w.call(w.first, w.lane_b, w.b, "1"));
  }
  REQUIRE(w.a.responses.size() == 1);
  CHECK(at(w.a.responses[0], {"id"}) == "\"ask\"");
  CHECK(at(w.a.responses[0], {"error", "code"}) == "-1");
  CHECK(w.b.responses.empty());
  CHECK(w.sent_to(w.first, BH_OUT_ASK).empty());
  CHECK(w.sent_to(w.second, BH_OUT_ASK).empty());
}

TEST_CASE("a lost connection fails its calls and requests, and its handle becomes invalid") {
  TwoServers w;
  const std::uint64_t one = w.call(w.first, w.lane_a, w.a, "1");
  w.call(w.first, w.lane_a, w.a, "2");
  const std::uint64_t kept = w.call(w.second, w.lane_b, w.b, "3");
  w.sends(w.a, sampling);
  const bh_lane handle = w.a.handle();
  w.edge.down(handle, {BH_E_UNAVAILABLE, "it has crashed"});
  CHECK(w.errors_to(w.first) == Texts(2, "tool call failed: server \"a\": it has crashed"));
  CHECK(w.first.load->asks == 0);
  CHECK(w.answers_to(w.second).empty());
  CHECK(w.edge.find(handle) == nullptr);
  CHECK(w.a.handle() != handle);  // a new connection, which is in the handshake
  w.edge.message(handle, 0, result_of(one, "{}"));
  w.edge.down(handle, {BH_E_UNAVAILABLE, "once more"});
  CHECK(w.lane_a.state() == LaneState::connecting);
  CHECK(w.answers_to(w.first).size() == 2);
  w.sends(w.b, result_of(kept, "{}"));
  CHECK(w.answers_to(w.second).size() == 1);
}

TEST_CASE("a connection counts as closing until its connector has released it") {
  TwoServers w;
  const bh_lane handle = w.a.handle();
  w.log_lines.clear();
  w.edge.closed(handle);  // the connection is open
  w.edge.closed(handle + 1'000);
  CHECK(w.log_lines == Texts(2, "a connector released a connection that was not being closed"));
  CHECK(w.edge.find(handle) == &w.lane_a);
  CHECK(w.idle == 0);
  w.servers[0]->remove(&w.lane_a);
  CHECK(w.a.closed == 1);
  CHECK(w.edge.closing() == 1);
  w.edge.closed(handle);
  CHECK(w.edge.closing() == 0);
  CHECK(w.idle == 1);
  w.edge.closed(handle);
  CHECK(w.log_lines.size() == 3);
  CHECK(w.idle == 1);
}

TEST_CASE("a failed exchange fails its call; a failed request of the lane itself fails the lane") {
  TwoServers w;
  const std::uint64_t one = w.call(w.first, w.lane_a, w.a, "1");
  const std::uint64_t two = w.call(w.first, w.lane_a, w.a, "2");
  w.edge.exchange_failed(w.b.handle(), one, {BH_E_IO, "not its own"});
  CHECK(w.answers_to(w.first).empty());
  w.edge.exchange_failed(w.a.handle(), one, {BH_E_IO, "HTTP 500"});
  w.edge.exchange_failed(w.a.handle(), two, {BH_E_IO, "server \"a\" sent HTTP 500"});
  w.edge.exchange_failed(w.a.handle(), two, {BH_E_IO, "once more"});
  CHECK(w.errors_to(w.first) == Texts{"tool call failed: server \"a\": HTTP 500",
                                      "tool call failed: server \"a\" sent HTTP 500"});
  w.edge.down(w.b.handle(), {BH_E_UNAVAILABLE, "gone"});
  const std::uint64_t handshake = std::stoull(w.b.number_of("initialize"));
  w.edge.exchange_failed(w.b.handle(), handshake, {BH_E_IO, "HTTP 401"});
  CHECK(w.lane_b.state() == LaneState::waiting);
  CHECK(w.lane_b.reason().find("HTTP 401") != std::string::npos);
}

TEST_CASE("the challenges of a server are logged at most once in 10 s, without credentials") {
  struct LoggingServers : TwoServers {
    mutable std::vector<std::string> lines;
    void log(std::int32_t, std::string_view text) const override { lines.emplace_back(text); }
    std::optional<std::string> without_credentials(std::string_view text) const override {
      const std::size_t at = text.find("sk-12345");
      if (at == std::string_view::npos) return std::nullopt;
      return std::string(text.substr(0, at)) + "***";
    }
  } w;
  const std::size_t before = w.lines.size();
  LaneFailure failure(BH_E_AUTH, "authentication required");
  w.edge.exchange_failed(w.a.handle(), w.call(w.first, w.lane_a, w.a, "1"), failure);
  CHECK(w.lines.size() == before);
  failure.http_status = 401;
  failure.challenges = {"Bearer realm=\"a\"", "Basic\n"};
  w.edge.exchange_failed(w.a.handle(), w.call(w.first, w.lane_a, w.a, "2"), failure);
  w.edge.exchange_failed(w.a.handle(), w.call(w.first, w.lane_a, w.a, "3"), failure);
  REQUIRE(w.lines.size() == before + 1);
  CHECK(w.lines.back().find("requires credentials (HTTP 401); WWW-Authenticate: Bearer "
                            "realm=\"a\", Basic") != std::string::npos);
  CHECK(w.lines.back().find('\n') == std::string::npos);
  failure.challenges = {std::string(1'020, 'x') + "sk-12345"};  // longer than the logged text
  w.edge.exchange_failed(w.a.handle(), w.call(w.first, w.lane_a, w.a, "4"), failure);
  CHECK(w.lines.size() == before + 1);
  w.edge.exchange_failed(w.b.handle(), w.call(w.second, w.lane_b, w.b, "5"), failure);
  REQUIRE(w.lines.size() == before + 2);  // each connection has its own limit
  CHECK(w.lines.back().find("sk-") == std::string::npos);
}

TEST_CASE("an invalid message is logged and counted, and fails the call that it names") {
  TwoServers w;
  const std::uint64_t one = w.call(w.first, w.lane_a, w.a, "1");
  w.call(w.second, w.lane_a, w.a, "2");
  const std::string number = std::to_string(one);
  w.log_lines.clear();
  w.profile.limits.message_bytes = 1'000;
  w.sends(w.a, "{");
  w.sends(w.a, R"({"jsonrpc":"1.0","id":7,"result":{}})");
  w.sends(w.b,
          // The number belongs to a call on another connection.
          R"({"jsonrpc":"2.0","id":)" + number + R"(,"result":7)");
  CHECK(w.counters.bad_upstream_messages == 3);
  CHECK(w.answers_to(w.first).empty());
  SECTION("by its id") {
    w.sends(w.a, R"({"jsonrpc":"2.0","id":)" + number + R"(,"result":{)");
  }
  SECTION("by its stream") {
    w.sends(w.a, "x", one);
  }
  SECTION("by its stream, since it is too large") {
    w.sends(w.a, result_of(one, "\"" + std::string(1'000, 'x') + "\""), one);
    CHECK(w.log_lines.back() == "server \"a\" sent an invalid message: too large");
  }
  CHECK(w.counters.bad_upstream_messages == 4);
  CHECK(w.log_lines.size() == 4);
  CHECK(w.log_lines[2].starts_with("server \"b\" sent an invalid message: "));
  CHECK(w.errors_to(w.first) == Texts{"tool call failed: " + w.log_lines.back()});
  CHECK(w.a.abandoned == std::vector<std::uint64_t>{one});
  CHECK(w.b.abandoned.empty());
  CHECK(w.answers_to(w.second).empty());
}

TEST_CASE(
    "the messages of a batch are handled individually, and their errors are logged in one line") {
  TwoServers w;
  const std::uint64_t one = w.call(w.first, w.lane_a, w.a, "1");
  const std::uint64_t two = w.call(w.second, w.lane_a, w.a, "2");
  w.log_lines.clear();
  w.sends(w.a, "[" + result_of(two, R"({"n":2})") + R"(, {"bad":1}, [], 7, )" +
                   result_of(one, R"({"n":1})") + "]");
  CHECK(w.answers_to(w.first) == Texts{R"({"jsonrpc":"2.0","id":1,"result":{"n":1}})"});
  CHECK(w.answers_to(w.second) == Texts{R"({"jsonrpc":"2.0","id":2,"result":{"n":2}})"});
  REQUIRE(w.log_lines.size() == 1);
  CHECK(w.log_lines[0].ends_with(" (and 2 more in its batch)"));
  CHECK(w.counters.bad_upstream_messages == 3);
}

TEST_CASE("only the first 256 messages of a batch are handled") {
  TwoServers w;
  const std::uint64_t number = w.call(w.first, w.lane_a, w.a, "1");
  const std::size_t before = GENERATE(255, 256);
  std::string batch = "[";
  for (std::size_t i = 0; i < before; ++i) {
    batch += R"({"jsonrpc":"2.0","id":)" + std::to_string(i) + R"(,"method":"ping"},)";
  }
  w.log_lines.clear();
  w.sends(w.a, batch + result_of(number, "{}") + "]");
  CHECK(w.a.responses.size() == before);
  CHECK(w.a.responses.back() ==
        R"({"jsonrpc":"2.0","id":)" + std::to_string(before - 1) + R"(,"result":{}})");
  CHECK(w.answers_to(w.first).size() == (before < 256 ? 1 : 0));
  CHECK(w.log_lines.size() == (before < 256 ? 0 : 1));
}

TEST_CASE(
    "if a connection is lost while its batch is being handled, the rest of the batch is dropped") {
  TwoServers w;
  const std::uint64_t one = w.call(w.first, w.lane_a, w.a, "1");
  const std::uint64_t two = w.call(w.first, w.lane_a, w.a, "2");
  w.client.inside = [&] { w.edge.down(w.a.handle(), {BH_E_UNAVAILABLE, "gone"}); };
  w.sends(w.a, "[" + result_of(one, "{}") + "," + result_of(two, "{}") + ", 7]");
  CHECK(w.errors_to(w.first) == Texts{"", "tool call failed: server \"a\": gone"});
  CHECK(w.counters.bad_upstream_messages == 0);
}

TEST_CASE("an invalid progress token is refused in a request and dropped in a notification") {
  TwoServers w;
  w.call(w.first, w.lane_a, w.a, "1");
  w.sends(w.a, R"({"jsonrpc":"2.0","id":"ask","method":"sampling/createMessage",)"
               R"("params":{"_meta":{"progressToken":{}}}})");
  REQUIRE(w.a.responses.size() == 1);
  CHECK(at(w.a.responses[0], {"error", "code"}) == "-32602");
  CHECK(w.sent_to(w.first, BH_OUT_ASK).empty());
  w.sends(w.a, R"({"jsonrpc":"2.0","method":"notifications/progress",)"
               R"("params":{"progressToken":[],"progress":1}})");
  CHECK(w.counters.dropped_events == 1);
  CHECK(w.sent_to(w.first, BH_OUT_EVENT).empty());
}

TEST_CASE("each type of notification reaches the part that handles it") {
  TwoServers w;
  const std::uint64_t number = w.call(w.first, w.lane_a, w.a, "1");
  w.call(w.second, w.lane_b, w.b, "2");
  const auto notifies = [&](const std::string &method, const std::string &params) {
    w.sends(w.a, R"({"jsonrpc":"2.0","method":"notifications/)" + method + R"(","params":)" +
                     params + "}");
  };
  SECTION("progress reaches the client of the call with the client's token") {
    notifies("progress", R"({"progressToken":)" + std::to_string(number) + R"(,"progress":1})");
    notifies("progress", R"({"progressToken":)" + std::to_string(number + 1) + R"(,"progress":1})");
    const Texts events = w.sent_to(w.first, BH_OUT_EVENT);
    REQUIRE(events.size() == 1);
    CHECK(at(events[0], {"params", "progressToken"}) == "\"p\"");
  }
  SECTION("a log message and an unknown notification reach the client with in-flight calls") {
    w.first.log_level = 0;
    notifies("message", R"({"level":"error","data":1})");
    notifies("of/a/vendor", R"({"x":1})");
    const Texts events = w.sent_to(w.first, BH_OUT_EVENT);
    REQUIRE(events.size() == 2);
    CHECK(at(events[0], {"params", "data"}) == "1");
    CHECK(at(events[1], {"params", "x"}) == "1");
  }
  SECTION("a changed resource reaches its subscribers") {
    Call &call = *w.first.open_calls.head;
    call.method = mcp::Method::resources_subscribe;
    call.name = "n:///1";
    w.subscriptions.begin(call, w.lane_a, "\"n:///1\"");
    notifies("resources/updated", R"({"uri":"n:///2"})");
    notifies("resources/updated", R"({"uri":"n:///1"})");
    const Texts events = w.sent_to(w.first, BH_OUT_EVENT);
    REQUIRE(events.size() == 1);
    CHECK(at(events[0], {"params", "uri"}) == "\"n:///1\"");
  }
  SECTION("a cancelled server-initiated request is withdrawn from its client") {
    w.sends(w.a, sampling);
    REQUIRE(w.first.load->asks == 1);
    notifies("cancelled", R"({"requestId":"other"})");
    CHECK(w.first.load->asks == 1);
    notifies("cancelled", R"({"requestId":"ask"})");
    CHECK(w.first.load->asks == 0);
    const Texts events = w.sent_to(w.first, BH_OUT_EVENT);
    REQUIRE(events.size() == 1);
    CHECK(at(events[0], {"params", "requestId"}) ==
          mcp::member(w.sent_to(w.first, BH_OUT_ASK)[0], "id"));
  }
  SECTION("a changed list is requested again, and resources with their templates") {
    const auto requested = [&] {
      Texts out;
      for (const std::string &request : w.a.requests) {
        out.emplace_back(mcp::member(request, "method"));
      }
      w.a.requests.clear();
      return out;
    };
    requested();
    notifies("tools/list_changed", "{}");
    CHECK(requested() == Texts{"\"tools/list\""});
    notifies("prompts/list_changed", "{}");
    CHECK(requested() == Texts{"\"prompts/list\""});
    notifies("resources/list_changed", "{}");
    CHECK(requested() == Texts{"\"resources/list\"", "\"resources/templates/list\""});
  }
  CHECK(w.sent_to(w.second, BH_OUT_EVENT).empty());
}

TEST_CASE("a server without sessions ends subscriptions/listen with notifications/cancelled") {
  WithoutSessions w;
  const std::string listen = w.server.number_of("subscriptions/listen");
  const std::uint64_t number = std::stoull(listen);
  const std::uint64_t call =
      w.call(open_session(w.sessions, w.client), w.server_lane, w.server, "1");
  const auto cancels = [&](const std::string &id) {
    w.sends(w.server,
            R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" + id +
                "}}");
  };
  cancels(std::to_string(call));  // only the client may cancel this request
  cancels(std::to_string(number + 1'000'000));
  CHECK(w.exchange_table.get(call) != nullptr);
  REQUIRE(w.exchange_table.get(number) != nullptr);
  cancels(listen);
  CHECK(w.exchange_table.get(number) == nullptr);
  CHECK(w.exchange_table.get(call) != nullptr);
  // The listen request is sent again.
  CHECK(wait_for(*w.loop, [&] { return w.server.number_of("subscriptions/listen") != listen; }));
}

TEST_CASE("a server without sessions does not learn of a cancelled subscription") {
  WithoutSessions w;
  Session &one = open_session(w.sessions, w.client), &two = open_session(w.sessions, w.client);
  const std::string first = w.server.number_of("subscriptions/listen");
  w.acknowledges(first, "[]");
  w.subscribe(one, "n:///1");
  w.subscribe(one, "n:///2");
  w.subscribe(two, "n:///3");
  Call *cancelled = nullptr;
  for (Call *call = one.open_calls.head; call != nullptr; call = call->session_next) {
    if (call->name == "n:///2") cancelled = call;
  }
  REQUIRE(cancelled != nullptr);
  const Scanned notification(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"n:///2"}})");
  w.ends.cancel(*cancelled, notification.get());
  w.ends.end_session(two);
  CHECK(w.server.notifications.empty());
  CHECK(w.server_lane.retracted.empty());  // log lines are still attributed to their clients
  REQUIRE(wait_for(*w.loop, [&] { return w.server.number_of("subscriptions/listen") != first; }));
  CHECK(at(w.server.requests.back(), {"params", "notifications", "resourceSubscriptions"}) ==
        R"(["n:///1"])");
  w.acknowledges(w.server.number_of("subscriptions/listen"), R"(["n:///1"])");
  const Texts answers = w.sent_to(one, BH_OUT_ANSWER);
  CHECK(std::count(answers.begin(), answers.end(),
                   R"({"jsonrpc":"2.0","id":"n:///1","result":{}})") == 1);
  CHECK(one.subscriptions.size() == 1);
  CHECK(two.subscriptions.empty());
  CHECK(one.open_calls.size == 0);
  CHECK(w.exchange_table.size() == 1);  // the listen request
}

TEST_CASE("a subscription that a server without sessions did not accept can be repeated") {
  WithoutSessions w;
  Session &one = open_session(w.sessions, w.client), &two = open_session(w.sessions, w.client);
  w.acknowledges(w.newest_listen(), "[]");
  const std::string answer = R"({"jsonrpc":"2.0","id":"n:///1","result":{}})";
  w.subscribe(one, "n:///1");
  std::string sent = w.next_listen();
  SECTION("by the same client, after the acknowledgement") {
    w.acknowledges(sent, "[]");
    REQUIRE(w.sent_to(one, BH_OUT_ANSWER).size() == 1);
    CHECK(w.sent_to(one, BH_OUT_ANSWER)[0].find("does not report changes") != std::string::npos);
    CHECK(one.subscriptions.empty());
    w.subscribe(one, "n:///1");
    sent = w.next_listen();
    w.acknowledges(sent, R"(["n:///1"])");
    CHECK(w.sent_to(one, BH_OUT_ANSWER).back() == answer);
    CHECK(one.subscriptions.size() == 1);
  }
  SECTION("by another client, before the acknowledgement") {
    const Scanned notification(
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"n:///1"}})");
    w.ends.cancel(*one.open_calls.head, notification.get());
    w.subscribe(two, "n:///1");
    w.acknowledges(sent, R"(["n:///1"])");
    sent = w.next_listen();
    w.acknowledges(sent, R"(["n:///1"])");
    CHECK(w.sent_to(two, BH_OUT_ANSWER) == Texts{answer});
  }
  CHECK(w.exchange_table.size() == 1);  // the listen request
}

TEST_CASE("no subscription is confirmed while a server without sessions reports no changes") {
  WithoutSessions w;
  Session &one = open_session(w.sessions, w.client), &two = open_session(w.sessions, w.client);
  w.acknowledges(w.newest_listen(), "[]");
  w.subscribe(one, "n:///1");
  w.acknowledges(w.next_listen(), R"(["n:///1"])");
  CHECK(w.sent_to(one, BH_OUT_ANSWER).size() == 1);
  const auto refuses = [&] {
    w.sends(w.server, R"({"jsonrpc":"2.0","id":)" + w.newest_listen() +
                          R"(,"error":{"code":-32601,"message":"gone"}})");
  };
  refuses();
  w.subscribe(two, "n:///1");
  CHECK(w.sent_to(two, BH_OUT_ANSWER).empty());
  w.next_listen();
  refuses();
  REQUIRE(w.sent_to(two, BH_OUT_ANSWER).size() == 1);
  const std::string refusal = w.sent_to(two, BH_OUT_ANSWER)[0];
  CHECK(refusal.find("it has rejected subscriptions/listen") != std::string::npos);
}

TEST_CASE("unknown members of a response are removed and counted before it is forwarded") {
  TwoServers w;
  const std::uint64_t number = w.call(w.first, w.lane_a, w.a, "1");
  w.sends(w.a, R"({"jsonrpc":"2.0","extra":{"a":1},"id":)" + std::to_string(number) +
                   R"(,"result":{"n":1},"more":2})");
  CHECK(w.answers_to(w.first) == Texts{R"({"jsonrpc":"2.0","id":1,"result":{"n":1}})"});
  CHECK(w.counters.dropped_members == 2);
}

TEST_CASE("requests from a server of a revision that permits none are dropped without a response") {
  TwoServers w;
  FakeServer modern;
  ServerDef def = server_named("m");
  def.protocol = ProtocolPin::v2026_07_28;
  def.roots = RootsMode::static_list;
  const auto upstream = w.behind(modern, def);
  Lane &lane = *upstream->lane_for(cap::sampling | cap::elicitation, 0);
  lane.start();
  w.answers_with(modern, "server/discover",
                 R"({"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}})");
  w.answers_with(modern, "tools/list", R"({"tools":[{"name":"t"}]})");
  REQUIRE(lane.state() == LaneState::ready);
  const std::uint64_t call = w.call(w.first, lane, modern, "1");
  REQUIRE(call != 0);
  w.log_lines.clear();
  const std::string methods[] = {"sampling/createMessage", "elicitation/create", "roots/list",
                                 "ping", "nonsense"};
  for (const std::string &method : methods) {
    w.sends(modern, R"({"jsonrpc":"2.0","id":"ask","method":")" + method + R"(","params":{}})");
  }
  w.sends(modern, R"({"jsonrpc":"2.0","id":"ask","method":"ping","params":{"_meta":)"
                  R"({"progressToken":[]}}})");
  CHECK(modern.responses.empty());
  CHECK(w.counters.refused_asks == 6);
  CHECK(w.sent_to(w.first, BH_OUT_ASK).empty());
  CHECK_FALSE(upstream->asks);
  REQUIRE(w.log_lines.size() == 6);
  CHECK(w.log_lines[0].find("\"m\" sent the request sampling/createMessage") != std::string::npos);
  // A server with sessions may send requests.
  REQUIRE(w.call(w.second, w.lane_a, w.a, "1") != 0);
  w.sends(w.a, sampling);
  CHECK(w.sent_to(w.second, BH_OUT_ASK).size() == 1);
  w.sends(modern, result_of(call, R"({"resultType":"complete","content":[]})"));
  CHECK(w.answers_to(w.first).size() == 1);
  while (!upstream->lanes().empty()) upstream->remove(upstream->lanes().back().get());
}
