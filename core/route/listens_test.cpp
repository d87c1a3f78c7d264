// Tests subscriptions/listen in the router: notifications, limits and closing.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "route/in_place_world.hpp"
#include "route/listens.hpp"

using namespace bulkhead;

namespace {

const std::string listen_meta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientCapabilities":{}})";

std::string listen(std::string_view id, std::string_view filter) {
  return std::string(R"({"jsonrpc":"2.0","id":)")
      .append(id)
      .append(R"(,"method":"subscriptions/listen","params":{"notifications":)")
      .append(filter)
      .append(",")
      .append(listen_meta)
      .append("}}");
}

std::string_view inside(std::string_view text, std::initializer_list<std::string_view> path) {
  for (const std::string_view name : path) text = mcp::member(text, name);
  return text;
}

struct ListenWorld : Alone {
  void begin() {
    tools.features = BH_TOOLS_SUBSCRIBE;
    start();
  }
  void turn() { reactor->poll(0); }
  // Changes the list of tools and notifies the clients.
  void change(const std::string &name) {
    tools.list = R"([{"name":")" + name + R"("}])";
    router->parts().servers.tools.list_changed(*upstream, BH_LIST_TOOLS);
    for (int i = 0; i < 3; ++i) turn();
  }
  void cancel(std::string_view id) {
    ask(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" +
        std::string(id) + "}}");
  }
  std::string id_of(const Sent &one) const {
    return std::string(
        inside(one.text, {"params", "_meta", "io.modelcontextprotocol/subscriptionId"}));
  }
  std::string method_of(const Sent &one) const { return std::string(inside(one.text, {"method"})); }
};

const std::string note = "bulkhead://t/note:///1";

}  // namespace

TEST_CASE("a listen request is acknowledged first, and its notifications contain its id") {
  ListenWorld w;
  w.begin();
  w.ask(listen("\"l\"", R"({"toolsListChanged":true,"promptsListChanged":false})"));
  w.ask(listen("7", R"({"promptsListChanged":true})"));
  REQUIRE(w.sent.size() == 2);
  CHECK(w.sent[0].kind == BH_OUT_EVENT);
  CHECK(w.method_of(w.sent[0]) == R"("notifications/subscriptions/acknowledged")");
  CHECK(inside(w.sent[0].text, {"params", "notifications"}) == R"({"toolsListChanged":true})");
  CHECK(w.id_of(w.sent[0]) == "\"l\"");
  CHECK(w.id_of(w.sent[1]) == "7");
  w.sent.clear();
  w.change("z");
  REQUIRE(w.sent.size() == 1);
  CHECK(w.method_of(w.sent[0]) == R"("notifications/tools/list_changed")");
  CHECK(w.id_of(w.sent[0]) == "\"l\"");
  CHECK(w.sent[0].session == w.session);
  w.sent.clear();
  w.cancel("\"l\"");
  REQUIRE(w.sent.size() == 1);  // an empty message, which releases the stream
  CHECK(w.sent[0].text.empty());
  w.sent.clear();
  w.change("y");
  CHECK(w.sent.empty());
}

TEST_CASE("a listen request without a session receives its notifications on its own stream") {
  ListenWorld w;
  w.begin();
  REQUIRE(w.ask_alone(3, listen("1", R"({"toolsListChanged":true})")) == BH_OK);
  REQUIRE(w.ask_alone(4, listen("1", R"({"toolsListChanged":true})")) == BH_OK);
  w.sent.clear();
  w.router->parts().clients.sessions.stream_gone(w.end(), 3);
  w.change("z");
  REQUIRE(w.sent.size() == 1);
  CHECK(w.sent[0].stream == 4);
  CHECK(w.sent[0].session == 0);
}

TEST_CASE("resources are acknowledged when their server has accepted them") {
  ListenWorld w;
  w.begin();
  w.ask(listen("1", R"({"resourceSubscriptions":[")" + note + R"(",")" + note +
                        R"(","bulkhead://none/x"],"toolsListChanged":true})"));
  CHECK(w.sent.empty());
  REQUIRE(w.tools.calls == std::vector<std::string>{"resources/subscribe note:///1"});
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1");
  w.change("z");
  CHECK(w.sent.empty());  // no notification is sent before the acknowledgement
  w.complete();
  w.turn();
  REQUIRE(w.sent.size() == 1);
  CHECK(inside(w.sent[0].text, {"params", "notifications"}) ==
        R"({"toolsListChanged":true,"resourceSubscriptions":[")" + note + R"("]})");
  w.sent.clear();
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1/part");
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///2");
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1");
  REQUIRE(w.sent.size() == 2);
  CHECK(w.method_of(w.sent[0]) == R"("notifications/resources/updated")");
  CHECK(inside(w.sent[0].text, {"params", "uri"}) == "\"" + note + "/part\"");
  CHECK(inside(w.sent[1].text, {"params", "uri"}) == "\"" + note + "\"");
  CHECK(w.id_of(w.sent[1]) == "1");
  // When no client listens any longer, the gateway unsubscribes from the server.
  w.cancel("1");
  w.turn();
  CHECK(w.tools.calls.back() == "resources/unsubscribe note:///1");
}

TEST_CASE("a resource that its server refuses is omitted") {
  ListenWorld w;
  w.tools.subscribe_status = BH_E_LIMIT;
  w.begin();
  w.ask(listen("1", R"({"resourceSubscriptions":[")" + note + R"("]})"));
  w.turn();
  REQUIRE(w.sent.size() == 1);
  CHECK(inside(w.sent[0].text, {"params", "notifications"}) == R"({"resourceSubscriptions":[]})");
}

TEST_CASE("a server that does not respond delays the acknowledgement by a limited time") {
  ListenWorld w;
  w.begin();
  w.ask(listen("1", R"({"resourceSubscriptions":[")" + note + R"("]})"));
  const std::uint64_t start = w.reactor->now_ns();
  while (w.sent.empty() && w.reactor->now_ns() - start < 20'000'000'000u) w.reactor->poll(50);
  CHECK(w.reactor->now_ns() - start >= Listens::resource_wait_ms * 1'000'000u);
  REQUIRE(w.sent.size() == 1);
  CHECK(inside(w.sent[0].text, {"params", "notifications"}) == R"({"resourceSubscriptions":[]})");
  w.sent.clear();
  w.router->parts().servers.tools.complete(w.tools.ids[0], BH_RESULT_OK, "{}");
  w.turn();
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1");
  CHECK(w.sent.empty());
}

TEST_CASE("listen requests are limited per connection and are not counted as requests") {
  ListenWorld w;
  w.profile.limits.listens_per_client = 2;
  w.profile.limits.in_flight_per_session = 1;
  w.begin();
  for (const char *id : {"1", "2", "3"}) w.ask(listen(id, R"({"toolsListChanged":true})"));
  CHECK(inside(w.got, {"id"}) == "3");
  CHECK(inside(w.got, {"error", "code"}) == "-32603");
  CHECK(w.has("limits.listens_per_client = 2"));
  w.turn();
  w.ask(R"({"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"t__x",)" + listen_meta +
        "}}");
  CHECK(w.tools.calls.size() == 1);
  w.cancel("1");
  w.turn();
  w.ask(listen("5", "{}"));
  CHECK(w.has("acknowledged"));
  // For requests without a connection, the limit applies to each principal.
  w.sent.clear();
  for (std::uint64_t stream = 1; stream <= 3; ++stream) w.ask_alone(stream, listen("1", "{}"));
  CHECK(w.has("limits.listens_per_client"));
}

TEST_CASE("the subscribe requests of a client's listen requests have its limit of calls together") {
  ListenWorld w;
  w.profile.limits.in_flight_per_session = 3;
  w.begin();
  const auto filter = [](const std::string &name) {
    std::string uris;
    for (const char *number : {"1", "2", "3", "4"}) {
      uris.append(uris.empty() ? "\"" : ",\"").append("bulkhead://t/note:///" + name + number);
      uris += "\"";
    }
    return R"({"resourceSubscriptions":[)" + uris + "]}";
  };
  const auto in_flight = [&w] { return w.router->parts().calls.ends.in_flight(); };
  w.ask(listen("1", filter("a")));
  w.ask(listen("2", filter("b")));
  CHECK(w.tools.calls.size() == 3);
  CHECK(in_flight() == 3);
  // Another client has a limit of its own.
  REQUIRE(w.ask_alone(1, listen("1", filter("c"))) == BH_OK);
  CHECK(w.tools.calls.size() == 6);
  w.router->parts().clients.sessions.stream_gone(w.end(), 1);
  w.turn();
  CHECK(in_flight() == 3);
  SECTION("each response starts the next request, and each listen request is acknowledged") {
    w.sent.clear();
    for (std::size_t i = 0; i < w.tools.ids.size(); ++i) {
      w.router->parts().servers.tools.complete(w.tools.ids[i], BH_RESULT_OK, "{}");
      w.turn();
      CHECK(in_flight() <= 3);
    }
    REQUIRE(w.sent.size() == 2);
    CHECK(w.id_of(w.sent[0]) == "1");
    CHECK(inside(w.sent[0].text, {"params", "notifications"}) == filter("a"));
    CHECK(w.id_of(w.sent[1]) == "2");
    CHECK(inside(w.sent[1].text, {"params", "notifications"}) == filter("b"));
  }
  SECTION("a closed listen request leaves its share to the others") {
    w.cancel("1");
    w.turn();
    w.turn();
    CHECK(in_flight() == 3);
    CHECK(w.tools.calls.back() == "resources/subscribe note:///b3");
  }
  SECTION("when the time is over, the requests end, and no other is sent") {
    w.sent.clear();
    w.router->parts().servers.tools.complete(w.tools.ids[0], BH_RESULT_OK, "{}");
    const std::uint64_t start = w.reactor->now_ns();
    while (w.sent.size() < 2 && w.reactor->now_ns() - start < 20'000'000'000u) w.reactor->poll(50);
    REQUIRE(w.sent.size() == 2);
    // Both times may be over in the same turn, in which case the order is undefined.
    const std::size_t second = w.id_of(w.sent[0]) == "1" ? 1 : 0;
    CHECK(w.id_of(w.sent[1 - second]) == "1");
    CHECK(inside(w.sent[1 - second].text, {"params", "notifications"}) ==
          R"({"resourceSubscriptions":["bulkhead://t/note:///a1"]})");
    CHECK(w.id_of(w.sent[second]) == "2");
    CHECK(inside(w.sent[second].text, {"params", "notifications"}) ==
          R"({"resourceSubscriptions":[]})");
    w.turn();
    CHECK(in_flight() == 0);
    const std::string next = "resources/subscribe note:///a4";  // after the response for a1
    CHECK(std::count(w.tools.calls.begin(), w.tools.calls.end(), next) == 1);
    const std::size_t last = w.tools.calls.size();
    for (int i = 0; i < 3; ++i) w.turn();
    for (std::size_t i = last; i < w.tools.calls.size(); ++i) {
      CHECK_FALSE(w.tools.calls[i].starts_with("resources/subscribe"));
    }
    // The limit is available to the next listen request.
    w.ask(listen("3", filter("d")));
    CHECK(in_flight() == 3);
  }
}

TEST_CASE("an invalid filter is an error, and unknown members of a filter are ignored") {
  ListenWorld w;
  w.begin();
  for (const char *bad : {"7", "[]", R"({"toolsListChanged":1})", R"({"resourceSubscriptions":{}})",
                          R"({"resourceSubscriptions":["a",1]})"}) {
    INFO(bad);
    w.ask(listen("1", bad));
    CHECK(inside(w.got, {"error", "code"}) == "-32602");
  }
  w.ask(R"({"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{)" + listen_meta +
        "}}");
  CHECK(inside(w.got, {"error", "code"}) == "-32602");
  // Only clients with the tasks extension may name tasks.
  w.ask(listen("1", R"({"taskIds":["x"]})"));
  CHECK(inside(w.got, {"error", "code"}) == "-32021");
  w.ask(listen("1", R"({"others":["x"]})"));
  CHECK(inside(w.got, {"params", "notifications"}) == "{}");
}

TEST_CASE("the profile decides what can be listened to") {
  ListenWorld w;
  w.profile.expose.prompts = false;
  w.profile.expose.subscribe = false;
  w.begin();
  w.ask(listen("1", R"({"toolsListChanged":true,"promptsListChanged":true,)"
                    R"("resourcesListChanged":true,"resourceSubscriptions":[")" +
                        note + R"("]})"));
  CHECK(inside(w.got, {"params", "notifications"}) ==
        R"({"toolsListChanged":true,"resourcesListChanged":true})");
  CHECK(w.tools.calls.empty());
}

TEST_CASE("a client that accepts only responses cannot listen") {
  ListenWorld w;
  w.begin();
  bh_peer peer{};
  peer.size = sizeof peer;
  peer.flags = BH_PEER_ANSWERS_ONLY;
  REQUIRE(w.router->parts().clients.sessions.open(w.end(), peer, &w.session, nullptr) == BH_OK);
  w.ask(listen("1", R"({"toolsListChanged":true})"));
  CHECK(inside(w.got, {"error", "code"}) == "-32601");
  w.ask(R"({"jsonrpc":"2.0","id":2,"method":"server/discover","params":{)" + listen_meta + "}}");
  CHECK(inside(w.got, {"result", "capabilities", "tools"}) == "{}");
}

TEST_CASE("when the gateway shuts down, a listen request receives its result") {
  ListenWorld w;
  w.begin();
  w.ask(listen("\"l\"", R"({"toolsListChanged":true})"));
  w.sent.clear();
  w.router->parts().clients.sessions.end_all("the end");
  REQUIRE(w.sent.size() == 1);
  CHECK(w.sent[0].kind == BH_OUT_ANSWER);
  CHECK(inside(w.sent[0].text, {"id"}) == "\"l\"");
  CHECK(inside(w.sent[0].text, {"result", "resultType"}) == R"("complete")");
  CHECK(inside(w.sent[0].text, {"result", "_meta", "io.modelcontextprotocol/subscriptionId"}) ==
        "\"l\"");
}
