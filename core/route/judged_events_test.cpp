// Tests policy decisions about messages other than calls.
#include "route/judged_events.hpp"

#include <catch2/catch.hpp>

#include "route/fakes.hpp"

using namespace bulkhead;

namespace {

struct World : JudgedEvents::Outcome {
  std::unique_ptr<Reactor> loop = *Reactor::create();
  Limits limits;
  Sessions sessions{1};
  FakeClient client;
  FakePolicy policy{BH_POLICY_DECIDES | BH_POLICY_JUDGES_INPUT | BH_POLICY_JUDGES_NOTIFICATIONS};
  Gate gate;
  Recorder recorder{*loop};
  RouterCounters counters;
  WaitingBytes waiting{limits};
  DuplicateChecks checks{
      *loop, [this](std::uint64_t number, bool found) { events.checked(number, found); }};
  std::vector<std::pair<std::uint64_t, bool>> unanswered;
  std::vector<std::string> passed_on, refusals;
  JudgedEvents events{
      {gate, sessions, checks, waiting, recorder, counters, limits, *loop,
       [](std::int32_t, std::string_view) {},
       [this](std::uint64_t number, bool late) { unanswered.emplace_back(number, late); }, *this}};
  Session &session = open_session(sessions, client);

  World() { gate.use(&policy_table, &policy); }
  ~World() override {
    wait_for(*loop, [&] { return loop->held(nullptr).blocking == 0; });
    loop->poll(0);
  }
  void pass(const JudgedEvent &event) override { passed_on.push_back(event.message); }
  void refused(const JudgedEvent &event) override { refusals.push_back(event.message); }

  bool judge(const std::string &message, std::string_view body = "{}", bh_lane lane = 0) {
    JudgedEvent event;
    event.kind = lane != 0 ? JudgedEvent::Kind::ask : JudgedEvent::Kind::to_client;
    event.lane = lane;
    event.id = message;
    event.message = message;
    return events.judge(std::move(event), session, body);
  }
  // Returns true if no message is waiting for a decision.
  bool idle() {
    if (!waiting.take(limits.policy_waiting_bytes)) return false;
    waiting.give_back(limits.policy_waiting_bytes);
    return true;
  }
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("an immediate decision forwards or refuses the message") {
  World w;
  CHECK(w.judge("a"));
  w.policy.verdict = BH_VERDICT_BLOCK;
  CHECK_FALSE(w.judge("b"));
  w.policy.verdict = BH_VERDICT_ASK;  // approval exists only for calls
  CHECK_FALSE(w.judge("c"));
  w.policy.verdict = BH_VERDICT_REWRITE;  // rewriting these messages is not supported
  CHECK_FALSE(w.judge("d"));
  w.policy.decides = BH_E_INTERNAL;
  CHECK_FALSE(w.judge("e"));
  CHECK(w.refusals == Texts{"b", "c", "d", "e"});
  CHECK(w.counters.refused_by_policy == 4);
  CHECK(w.passed_on.empty());
}

TEST_CASE("a message waits only for its own decision") {
  World w;
  w.policy.decides = BH_PENDING;
  CHECK_FALSE(w.judge("a"));
  CHECK_FALSE(w.judge("b"));
  const std::uint64_t a = w.policy.numbers[0], b = w.policy.numbers[1];
  CHECK(a != b);
  CHECK(w.events.has(a));
  CHECK_FALSE(w.events.has(a + 17));
  w.events.decided(b, {});
  CHECK(w.passed_on == Texts{"b"});
  w.events.decided(b, Gate::refusal("r", "no"));  // ignored: the message has already been decided
  w.events.decided(a, Gate::refusal("r", "no"));
  CHECK(w.refusals == Texts{"a"});
  CHECK_FALSE(w.events.has(a));
  CHECK(w.idle());
}

TEST_CASE(
    "messages with duplicate members are refused without asking the policy, even if they are "
    "large") {
  World w;
  CHECK_FALSE(w.judge("small", R"({"a":1,"a":2})"));
  CHECK(w.refusals == Texts{"small"});
  const std::string filler(DuplicateChecks::at_once, 'x');
  CHECK_FALSE(w.judge("large", R"({"a":1,"a":")" + filler + R"("})"));
  CHECK(wait_for(*w.loop, [&] { return w.refusals.size() == 2; }));
  CHECK(w.policy.numbers.empty());
  CHECK_FALSE(w.judge("sound", R"({"a":1,"b":")" + filler + R"("})"));
  CHECK(wait_for(*w.loop, [&] { return w.passed_on.size() == 1; }));
  CHECK(w.policy.numbers.size() == 1);
}

TEST_CASE("a large message whose client has disconnected is not evaluated") {
  World w;
  const std::string body = R"({"b":")" + std::string(DuplicateChecks::at_once, 'x') + R"("})";
  Texts passed_on;
  SECTION("a notification is dropped") {
    CHECK_FALSE(w.judge("large", body));
  }
  SECTION("a request is passed on, so that its server gets a response") {
    CHECK_FALSE(w.judge("large", body, 7));
    passed_on = {"large"};
  }
  w.sessions.erase(w.session.handle);
  CHECK(wait_for(*w.loop, [&] { return w.loop->held(nullptr).blocking == 0 && w.idle(); }));
  CHECK(w.passed_on == passed_on);
  CHECK(w.refusals.empty());
  CHECK(w.policy.numbers.empty());
}

// A server that a reload has removed may still be asked and answered until it has drained.
TEST_CASE("a large message is evaluated regardless of its server") {
  World w;
  const std::string body = R"({"b":")" + std::string(DuplicateChecks::at_once, 'x') + R"("})";
  CHECK_FALSE(w.judge("large", body, 7));
  CHECK(wait_for(*w.loop, [&] { return w.loop->held(nullptr).blocking == 0 && w.idle(); }));
  CHECK(w.passed_on == Texts{"large"});
  CHECK(w.policy.numbers.size() == 1);
}

TEST_CASE("messages that time out or exceed the byte limit are refused") {
  World w;
  w.policy.decides = BH_PENDING;
  SECTION("the decision times out") {
    w.limits.policy_timeout_ms = 1;
    CHECK_FALSE(w.judge("a"));
    CHECK(wait_for(*w.loop, [&] { return !w.refusals.empty(); }));
    CHECK(w.counters.policy_timeouts == 1);
    REQUIRE(w.unanswered.size() == 1);
    CHECK(w.unanswered[0] == std::pair(w.policy.numbers[0], true));
  }
  SECTION("too many bytes are waiting") {
    w.limits.policy_waiting_bytes = 3;
    CHECK_FALSE(w.judge("abc"));
    CHECK(w.refusals.empty());
    CHECK_FALSE(w.judge("d"));
    CHECK(w.refusals == Texts{"d"});
    CHECK(w.unanswered == std::vector{std::pair(w.policy.numbers[1], false)});
  }
}

TEST_CASE("a request that its server has cancelled is not forwarded") {
  World w;
  w.policy.decides = BH_PENDING;
  CHECK_FALSE(w.judge("a", "{}", 7));
  w.events.drop_ask(8, "a");
  w.events.drop_ask(7, "b");
  CHECK(w.unanswered.empty());
  w.events.drop_ask(7, "a");
  CHECK(w.unanswered == std::vector{std::pair(w.policy.numbers[0], false)});
  w.events.decided(w.policy.numbers[0], {});
  CHECK(w.passed_on.empty());
  CHECK(w.idle());
}
