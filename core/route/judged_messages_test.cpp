// Tests what happens to messages other than calls after the policy decision, including messages
// whose sender or recipient has disconnected.
#include "route/judged_messages.hpp"

#include <catch2/catch.hpp>

#include "route/message_world.hpp"

using namespace bulkhead;

namespace {

constexpr bh_lane connection = 5;

struct World : MessageWorld {
  bool connected = true;
  JudgedMessages messages{
      {[this](bh_lane handle) { return connected && handle == connection ? &lane : nullptr; }, asks,
       calls, answers, subscriptions}};

  World() {
    policy.needs = BH_POLICY_DECIDES | BH_POLICY_JUDGES_INPUT | BH_POLICY_JUDGES_NOTIFICATIONS;
    policy.verdict = BH_VERDICT_BLOCK;  // a message that is evaluated a second time is refused
    gate.use(&policy_table, &policy);
  }
  static JudgedEvent event(JudgedEvent::Kind kind, const std::string &message) {
    JudgedEvent out;
    out.kind = kind;
    out.lane = connection;
    out.message = message;
    return out;
  }
  JudgedEvent ask(const std::string &id) const {
    JudgedEvent out =
        event(JudgedEvent::Kind::ask, R"({"jsonrpc":"2.0","id":)" + id +
                                          R"(,"method":"sampling/createMessage","params":{}})");
    out.method = mcp::Method::sampling_create_message;
    out.id = id;
    out.to.session = first.handle;
    return out;
  }
  // Returns the id of the request that was sent to the client.
  std::string asked(const Session &s) const {
    const auto sent = sent_to(s, BH_OUT_ASK);
    return sent.empty() ? "" : std::string(mcp::member(sent.back(), "id"));
  }
};

const std::string note = R"({"jsonrpc":"2.0","method":"notifications/message","params":{}})";

}  // namespace

TEST_CASE("a notification to a client is dropped if its call has finished") {
  World w;
  const Call &call = w.call_of(w.first);
  JudgedEvent event = World::event(JudgedEvent::Kind::to_client, note);
  event.to = {w.first.handle, 7, 0};
  event.call = call.id;
  w.messages.pass(event);
  CHECK(w.sent_to(w.first, BH_OUT_EVENT) == std::vector<std::string>{note});
  CHECK(w.client.sent.back().stream == 7);
  event.call = call.id + 1'000;
  w.messages.pass(event);
  CHECK(w.client.sent.size() == 1);
  event.call = 0;  // not caused by a call
  w.messages.pass(event);
  CHECK(w.client.sent.size() == 2);
  w.messages.refused(event);
  w.sessions.erase(w.first.handle);
  w.messages.pass(event);
  CHECK(w.client.sent.size() == 2);
  CHECK(w.policy.numbers.empty());
}

TEST_CASE("a notification to a server is dropped if its connection is closed") {
  World w;
  JudgedEvent event = World::event(JudgedEvent::Kind::to_server, note);
  w.messages.pass(event);
  CHECK(w.lane.messages == std::vector<std::string>{note});
  w.messages.refused(event);
  event.lane = connection + 1;
  w.messages.pass(event);
  event.lane = 0;  // the handle of a tools plugin
  w.messages.pass(event);
  w.connected = false;
  event.lane = connection;
  w.messages.pass(event);
  CHECK(w.lane.messages.size() == 1);
}

TEST_CASE("an allowed server-initiated request reaches its client without a second evaluation") {
  World w;
  w.call_of(w.first);
  w.messages.pass(w.ask("\"a\""));
  CHECK(w.sent_to(w.first, BH_OUT_ASK).size() == 1);
  CHECK(w.sent_to(w.second, BH_OUT_ASK).empty());
  CHECK(w.policy.numbers.empty());
  CHECK(w.lane.messages.empty());
}

TEST_CASE("a request whose client or server disconnected during the decision is not forwarded") {
  World w;
  Call &call = w.call_of(w.first);
  SECTION("the client: the server gets an error with its own id") {
    w.first.input_ended = true;
    w.messages.pass(w.ask("\"a\""));
    REQUIRE(w.lane.messages.size() == 1);
    CHECK(at(w.lane.messages[0], {"id"}) == "\"a\"");
    CHECK(at(w.lane.messages[0], {"error", "code"}) == "-1");
  }
  SECTION("the client's session has ended") {
    const JudgedEvent ask = w.ask("\"a\"");
    w.calls.close(call);
    w.sessions.erase(w.first.handle);
    w.call_of(w.second);  // never receives the request
    w.messages.pass(ask);
    REQUIRE(w.lane.messages.size() == 1);
    CHECK(at(w.lane.messages[0], {"id"}) == "\"a\"");
    CHECK(at(w.lane.messages[0], {"error", "code"}) == "-1");
    CHECK(w.client.sent.empty());
    return;
  }
  SECTION("the server") {
    w.connected = false;
    w.messages.pass(w.ask("\"a\""));
    w.messages.refused(w.ask("\"a\""));
    CHECK(w.lane.messages.empty());
  }
  CHECK(w.sent_to(w.first, BH_OUT_ASK).empty());
  CHECK(call.stage == Stage::at_server);
  CHECK(w.first.load->asks == 0);
}

TEST_CASE("a refused request gets an error response and reaches no client") {
  World w;
  w.call_of(w.first);
  w.messages.refused(w.ask("7"));
  w.messages.refused(w.ask("8"));
  REQUIRE(w.lane.messages.size() == 2);
  CHECK(w.lane.messages[0] == R"({"jsonrpc":"2.0","id":7,"error":{"code":-1,)"
                              R"("message":"The request was blocked by policy"}})");
  CHECK(at(w.lane.messages[1], {"id"}) == "8");
  CHECK(w.client.sent.empty());
  CHECK(w.counters.refused_asks == 2);
}

TEST_CASE("a client's response is forwarded or refused once, with the server's id") {
  World w;
  w.call_of(w.first);
  w.messages.pass(w.ask("\"a\""));
  const std::string id = w.asked(w.first);
  REQUIRE_FALSE(id.empty());
  JudgedEvent answer = World::event(JudgedEvent::Kind::answer,
                                    R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"n":1}})");
  answer.lane = 0;
  answer.ask = std::stoull(id);
  SECTION("forwarded") {
    w.messages.pass(answer);
    CHECK(w.lane.messages ==
          std::vector<std::string>{R"({"jsonrpc":"2.0","id":"a","result":{"n":1}})"});
  }
  SECTION("refused: the server receives no part of it") {
    w.messages.refused(answer);
    REQUIRE(w.lane.messages.size() == 1);
    CHECK(at(w.lane.messages[0], {"id"}) == "\"a\"");
    CHECK(at(w.lane.messages[0], {"error", "message"}) == R"("The request was blocked by policy")");
  }
  CHECK(w.first.load->asks == 0);
  w.messages.pass(answer);
  w.messages.refused(answer);
  CHECK(w.lane.messages.size() == 1);
  CHECK(w.policy.numbers.empty());
}

TEST_CASE("a refused subscription is removed only if it has not been replaced in the meantime") {
  World w;
  for (Session *session : {&w.first, &w.second}) {
    for (const char *uri : {"n:///1", "n:///2"}) {
      Call &call = w.call_of(*session, mcp::Method::resources_subscribe);
      call.name = uri;
      w.subscriptions.begin(call, w.lane, "\"" + std::string(uri) + "\"");
    }
  }
  REQUIRE(w.first.subscriptions.size() == 2);
  JudgedEvent event = World::event(JudgedEvent::Kind::subscription, {});
  event.to.session = w.first.handle;
  event.id = "\"n:///1\"";
  event.tool = "n:///1";
  w.messages.pass(event);
  event.tool = "n:///other";  // the token has since been mapped to another URI
  w.messages.refused(event);
  CHECK(w.first.subscriptions.size() == 2);
  event.tool = "n:///1";
  w.messages.refused(event);
  CHECK(w.first.subscriptions.size() == 1);
  CHECK(w.first.subscriptions.contains("\"n:///2\""));
  CHECK(w.second.subscriptions.size() == 2);
  event.to.session = w.first.handle + 1'000;
  w.messages.refused(event);
  CHECK(w.second.subscriptions.size() == 2);
}
