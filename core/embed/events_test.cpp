// Tests policies that evaluate server-initiated requests, client responses and notifications.
#include <catch2/catch.hpp>
#include <string>

#include "embed/policy_world.hpp"

using namespace bulkhead;

namespace {

constexpr const char *able = R"({"elicitation":{},"sampling":{}})";
constexpr const char *elicit =
    R"({"jsonrpc":"2.0","id":"s1","method":"elicitation/create","params":{"message":"?"}})";
constexpr const char *sample =
    R"({"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"maxTokens":1}})";
constexpr const char *log_line =
    R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}})";

// A gateway with an in-flight call to tool "x" of server "a".
struct EventWorld : PolicyWorld {
  std::unique_ptr<Client> client;

  explicit EventWorld(std::uint32_t needs) : PolicyWorld(needs) {}
  void begin() {
    start();
    client = std::make_unique<Client>(*host, able);
    REQUIRE(turn_until([&] { return host->settled(); }));
    client->call("1", "a__x", R"(,"_meta":{"progressToken":"tok"})");
    REQUIRE(sent_call());
    REQUIRE(judge.asked.empty());
  }
  // Sets a verdict that the policy returns immediately for every request.
  void set_verdict(std::uint32_t verdict) {
    judge.judge = [verdict](const FakeJudge::Asked &, bh_verdict *out) {
      out->verdict = verdict;
      out->rule = bh::str("r1");
      return bh_status(BH_OK);
    };
  }
  // Waits until a refusal has been recorded, and returns the latest such record.
  const FakeJudge::Kept &refusal() {
    const FakeJudge::Kept *found = nullptr;
    REQUIRE(turn_until([&] {
      for (const FakeJudge::Kept &one : judge.records) {
        if (one.outcome == BH_OUTCOME_REFUSED) found = &one;
      }
      return found != nullptr;
    }));
    return *found;
  }
  bool server_got(std::string_view text) {
    for (const std::string &m : up.lane("a").sent) {
      if (m.find(text) != std::string::npos) return true;
    }
    return false;
  }
  std::string question() { return FakeUpstreams::id_of(client->got.back()); }
  void finish() {
    for (const std::string &m : up.lane("a").sent) {
      if (m.find("tools/call") == std::string::npos) continue;
      up.send("a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(m) + R"(,"result":{}})");
      return;
    }
  }
};

}  // namespace

TEST_CASE("a server-initiated request is evaluated before its client receives it") {
  EventWorld w(BH_POLICY_JUDGES_INPUT);
  w.begin();
  SECTION("allowed by a delayed verdict") {
    w.up.send("a", elicit);
    REQUIRE(w.judge.asked.size() == 1);
    CHECK(w.judge.last().look == "decide");
    CHECK(w.judge.last().event == BH_EVENT_INPUT_REQUEST);
    CHECK(w.judge.last().method == "elicitation/create");
    CHECK(w.judge.last().server == "a");
    CHECK(w.judge.last().name == "x");
    CHECK(w.judge.last().text == R"({"message":"?"})");
    w.turn(20);
    CHECK(w.client->got.empty());
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    REQUIRE(w.turn_until([&] { return w.client->has("elicitation/create"); }));
  }
  SECTION("refused by a delayed verdict") {
    w.up.send("a", elicit);
    w.judge.decided(w.judge.last().number, BH_VERDICT_BLOCK);
    REQUIRE(w.turn_until([&] { return w.server_got(R"("result":{"action":"decline"})"); }));
    CHECK(w.client->got.empty());
    CHECK(w.refusal().rule == "r1");
    CHECK(w.refusal().name == "x");
  }
  SECTION("refused immediately: every verdict except allow is a refusal") {
    constexpr std::uint32_t refusals[] = {BH_VERDICT_BLOCK, BH_VERDICT_ASK, 77};
    for (const std::uint32_t verdict : refusals) {
      w.up.lane("a").sent.clear();
      w.set_verdict(verdict);
      w.up.send("a", sample);
      CHECK(w.server_got(R"("id":"s1","error":{"code":-1,"message":"The request was blocked)"));
      CHECK(w.client->got.empty());
    }
  }
  SECTION("duplicate members are refused without evaluation") {
    w.up.send("a", R"({"jsonrpc":"2.0","id":"s1","method":"elicitation/create",)"
                   R"("params":{"requestedSchema":{"a":1,"a":2}}})");
    CHECK(w.judge.asked.empty());
    CHECK(w.server_got(R"("action":"decline")"));
  }
  SECTION("cancelled by the server before the verdict") {
    w.up.send("a", elicit);
    w.up.send(
        "a", R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s1"}})");
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    w.turn(20);
    CHECK(w.client->got.empty());
  }
  SECTION("its call finishes before the verdict") {
    w.up.send("a", elicit);
    w.finish();
    w.client->got.clear();
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    REQUIRE(w.turn_until([&] { return w.server_got(R"("action":"cancel")"); }));
    CHECK(w.client->got.empty());
  }
}

TEST_CASE("a client's response is evaluated before the server receives it") {
  EventWorld w(BH_POLICY_JUDGES_INPUT);
  w.begin();
  w.set_verdict(BH_VERDICT_ALLOW);
  w.up.send("a", elicit);
  REQUIRE(w.client->has("elicitation/create"));
  const std::string id = w.question();
  w.judge.judge = later;
  const std::string accept =
      R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"action":"accept","content":{"a":"b"}}})";
  SECTION("allowed; a second response is dropped") {
    w.client->end->send(accept);
    CHECK(w.judge.last().event == BH_EVENT_INPUT_RESPONSE);
    CHECK(w.judge.last().text == R"({"action":"accept","content":{"a":"b"}})");
    CHECK(w.judge.last().name == "x");
    const std::size_t asked = w.judge.asked.size();
    w.client->end->send(accept);
    CHECK(w.judge.asked.size() == asked);
    CHECK_FALSE(w.server_got("accept"));
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    REQUIRE(w.turn_until([&] { return w.server_got(R"("id":"s1","result":{"action":"accept")"); }));
  }
  SECTION("refused: the server does not receive the response, and its call continues") {
    w.client->end->send(accept);
    w.judge.decided(w.judge.last().number, BH_VERDICT_BLOCK);
    REQUIRE(w.turn_until([&] { return w.server_got(R"("action":"decline")"); }));
    CHECK_FALSE(w.server_got("accept"));
    w.finish();
    CHECK(w.client->has(R"("id":1,"result")"));
  }
  SECTION("the response of a client without the capability is not evaluated") {
    const std::size_t asked = w.judge.asked.size();
    w.client->end->send(R"({"jsonrpc":"2.0","id":)" + id +
                        R"(,"error":{"code":-1,"message":"no"}})");
    CHECK(w.judge.asked.size() == asked);
    CHECK(w.server_got(R"("id":"s1","error")"));
  }
  SECTION("its call finishes before the verdict") {
    w.client->end->send(accept);
    w.finish();
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    w.turn(20);
    CHECK_FALSE(w.server_got("accept"));
  }
}

TEST_CASE("notifications in both directions are evaluated, and late ones are dropped") {
  EventWorld w(BH_POLICY_JUDGES_NOTIFICATIONS);
  w.begin();
  SECTION("a log message") {
    w.up.send("a", log_line);
    CHECK(w.judge.last().event == BH_EVENT_NOTIFICATION);
    CHECK(w.judge.last().flags == 0);
    CHECK(w.judge.last().method == "notifications/message");
    CHECK(w.judge.last().text == R"({"level":"error","data":"x"})");
    CHECK(w.client->got.empty());
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    REQUIRE(w.turn_until([&] { return w.client->has("notifications/message"); }));
    w.client->got.clear();
    w.set_verdict(BH_VERDICT_BLOCK);
    w.up.send("a", log_line);
    CHECK(w.client->got.empty());
    CHECK(w.refusal().rule == "r1");
  }
  SECTION("a notification that the connector attributes to a call") {
    std::string call;
    for (const std::string &m : w.up.lane("a").sent) {
      if (m.find("tools/call") != std::string::npos) call = FakeUpstreams::id_of(m);
    }
    const auto message = GENERATE(
        std::string(log_line), std::string(R"({"jsonrpc":"2.0","method":"notifications/mine"})"));
    w.up.send("a", message);
    CHECK(w.judge.last().name.empty());  // the call cannot be determined
    w.up.send("a", message, std::stoull(call));
    REQUIRE(w.judge.asked.size() == 2);
    CHECK(w.judge.last().name == "x");
    // The message is forwarded even if the call finishes before the verdict arrives.
    w.finish();
    w.client->got.clear();
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    REQUIRE(w.turn_until([&] { return w.client->has("\"notifications/m"); }));
  }
  SECTION("progress of a call that has finished") {
    std::string call;
    for (const std::string &m : w.up.lane("a").sent) {
      if (m.find("tools/call") != std::string::npos) call = FakeUpstreams::id_of(m);
    }
    w.up.send("a", R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
                   R"({"progressToken":)" +
                       call + R"(,"progress":1}})");
    REQUIRE(w.judge.asked.size() == 1);
    CHECK(w.judge.last().name == "x");
    w.finish();
    w.client->got.clear();
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    w.turn(20);
    CHECK(w.client->got.empty());
  }
  SECTION("progress that the client reports for a server-initiated request") {
    w.up.send("a", R"({"jsonrpc":"2.0","id":"s1","method":"elicitation/create","params":)"
                   R"({"message":"?","_meta":{"progressToken":"up"}}})");
    CHECK(w.judge.asked.empty());  // this policy evaluates only notifications
    w.set_verdict(BH_VERDICT_BLOCK);
    const std::string progress =
        R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)" +
        w.question() + R"(,"progress":1}})";
    w.client->end->send(progress);
    REQUIRE(w.judge.asked.size() == 1);
    CHECK(w.judge.last().flags == BH_REQUEST_TO_SERVER);
    CHECK_FALSE(w.server_got(R"("progressToken":"up")"));
    w.set_verdict(BH_VERDICT_ALLOW);
    w.client->end->send(progress);
    CHECK(w.server_got(R"("progressToken":"up")"));
  }
  SECTION("notifications that the gateway handles itself are not evaluated") {
    w.client->end->send(
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
    CHECK(w.judge.asked.empty());
    CHECK(w.server_got("notifications/cancelled"));
  }
}

TEST_CASE("an event without a verdict is rejected when the time limit expires") {
  EventWorld w(BH_POLICY_JUDGES_INPUT);
  w.profile.limits.policy_timeout_ms = 60;
  w.begin();
  w.up.send("a", elicit);
  REQUIRE(w.turn_until([&] { return w.server_got(R"("action":"decline")"); }));
  CHECK(w.refusal().rule == "policy-timeout");
  w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
  w.turn(20);
  CHECK(w.client->got.empty());
}

TEST_CASE("a call with inputs is decided, counted and recorded once") {
  EventWorld w(BH_POLICY_DECIDES | BH_POLICY_JUDGES_INPUT | BH_POLICY_JUDGES_NOTIFICATIONS);
  w.set_verdict(BH_VERDICT_ALLOW);
  w.start();
  w.client = std::make_unique<Client>(*w.host, able);
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  w.client->call("1", "a__x");
  for (int i = 0; i < 3; ++i) {
    w.up.send("a", elicit);
    REQUIRE(w.client->has("elicitation/create"));
    const std::string id = w.question();
    w.client->got.clear();
    w.client->end->send(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"action":"accept"}})");
    w.up.send("a", log_line);
  }
  w.finish();
  CHECK(w.client->has(R"("id":1,"result")"));
  std::size_t decided = 0;
  for (const auto &asked : w.judge.asked) decided += asked.event == BH_EVENT_CALL ? 1 : 0;
  CHECK(decided == 1);
  CHECK(w.judge.asked.size() == 1 + 3 * 3);
  CHECK(w.record().outcome == BH_OUTCOME_OK);
  std::size_t recorded = 0;
  for (const auto &one : w.judge.records) recorded += one.method == "tools/call" ? 1 : 0;
  CHECK(recorded == 1);
  CHECK(w.host->status().calls == 1);
}
