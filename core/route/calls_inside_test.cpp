// Tests connectors, policies, clients and telemetry plugins that call back during a step. The
// resulting events are handled after the step.
#include <algorithm>
#include <catch2/catch.hpp>
#include <initializer_list>
#include <string>
#include <vector>

#include "route/call_world.hpp"
#include "route/count_allocations.hpp"
#include "route/protocol.hpp"

using namespace bulkhead;

namespace {

using Happen = std::function<void(World &)>;

// A step during which an event can arrive, and the stage that follows the step.
struct StepCase {
  const char *name;
  const char *leads_to;
  std::function<void(World &, const Happen &)> run;
};

std::function<void()> inside(World &w, const Happen &happen) {
  return [&w, &happen] {
    w.find_call();
    happen(w);
  };
}

const std::vector<StepCase> steps = {
    {"the policy's question, allowed", "at server",
     [](World &w, const Happen &happen) {
       w.policy.inside = inside(w, happen);
       stages.at("at server")(w);
     }},
    {"the policy's question, pending", "deciding",
     [](World &w, const Happen &happen) {
       w.policy.inside = inside(w, happen);
       stages.at("deciding")(w);
     }},
    {"the policy's question, asks", "approving",
     [](World &w, const Happen &happen) {
       w.policy.inside = inside(w, happen);
       w.policy.needs = BH_POLICY_DECIDES;
       w.policy.verdict = BH_VERDICT_ASK;
       w.begin(1);
     }},
    {"the approval form", "approving",
     [](World &w, const Happen &happen) {
       w.profile.approval.elicitation = true;
       w.session.caps = cap::elicitation;
       w.session.revision = newest_revision;
       w.client.inside = inside(w, happen);
       stages.at("approving")(w);
       CHECK_FALSE(w.client.inside);
     }},
    {"the intent", "recording",
     [](World &w, const Happen &happen) {
       w.policy.inside = [&w, &happen] { w.telemetry.inside = inside(w, happen); };
       stages.at("recording")(w);
     }},
    {"sending", "at server",
     [](World &w, const Happen &happen) {
       w.lane.inside = inside(w, happen);
       stages.at("at server")(w);
     }},
    {"queueing", "queued",
     [](World &w, const Happen &happen) {
       w.lane.inside = inside(w, happen);
       stages.at("queued")(w);
     }},
    {"the question about the answer, allowed", "result",
     [](World &w, const Happen &happen) {
       w.policy.needs = BH_POLICY_DECIDES | BH_POLICY_READS_RESULTS;
       w.begin(1);
       w.policy.inside = inside(w, happen);
       w.server_answers(1);
     }},
    {"the question about the answer, pending", "answer deciding",
     [](World &w, const Happen &happen) {
       w.lane.inside = [&w, &happen] { w.policy.inside = inside(w, happen); };
       stages.at("answer deciding")(w);
     }},
    {"sending the answer", "result",
     [](World &w, const Happen &happen) {
       stages.at("at server")(w);
       w.client.inside = inside(w, happen);
       w.server_answers(1);
     }},
};

// Returns the expected result of an event that arrives during a step. The event has the same effect
// as in the stage that follows the step, unless it arrives too early for that stage.
std::string expected_inside(const StepCase &step, const std::string &what) {
  const std::string name = step.name, leads_to = step.leads_to;
  const bool question = name.starts_with("the policy's question");
  const auto is_one_of = [&](std::initializer_list<const char *> all) {
    return std::find(all.begin(), all.end(), what) != all.end();
  };
  if (leads_to == "result") return leads_to;  // the server has already responded
  // The stage that follows arms a new deadline, so this time-out has no effect.
  const bool server_time = leads_to == "at server" || leads_to == "queued";
  if (what == "time" && !server_time && name != "the approval form") return leads_to;
  // The call has not been sent, and no approver has been asked, so these events have no effect.
  if (question && is_one_of({"server answers", "server fails", "input ends"})) return leads_to;
  // The rules changed before the verdict arrived, so the policy is asked again.
  if (question && leads_to == "deciding" && what == "allowed by old rules") return leads_to;
  if (question && leads_to != "deciding" &&
      is_one_of({"allowed by old rules", "committed, rules: no", "its turn, rules: no"})) {
    return "MCP request blocked by policy (rule)";
  }
  // A commit covers only records that were written before it.
  if (name == "the intent" && is_one_of({"committed", "committed, rules: no"})) return leads_to;
  // The client's response to the form does not allow the call.
  if (name == "the approval form" && what == "ask answered") {
    return "MCP request blocked by policy (rule): needs approval, which was denied";
  }
  return expected_outcome(leads_to, what);
}

}  // namespace

TEST_CASE("each event has the expected result during each step that calls out") {
  std::size_t seen = 0;
  for (const StepCase &step : steps) {
    for (const auto &[what, happen] : happenings) {
      INFO(step.name << ": " << what);
      World w;
      bool happened = false;
      const Happen once = [&](World &world) {
        happened = true;
        CHECK(world.loop_of_calls.running());
        happen(world);
      };
      step.run(w, once);
      CHECK(happened);
      CHECK_FALSE(w.loop_of_calls.running());
      const std::string want = expected_inside(step, what);
      CHECK(w.outcome().substr(0, want.size()) == want);
      ++seen;
    }
  }
  CHECK(seen == steps.size() * happenings.size());
}

TEST_CASE("each event has the expected result in each stage during a step of another call") {
  for (const auto &[stage, reach] : stages) {
    for (const auto &[what, happen] : happenings) {
      INFO(stage << ": " << what);
      World w;
      FakeClient other;
      Session &session = open_session(w.sessions, other);
      reach(w);
      REQUIRE(w.outcome() == stage);
      w.policy.verdict = BH_VERDICT_BLOCK;
      w.policy.inside = [&w, &happens = happen] {
        w.policy.verdict = BH_VERDICT_ALLOW;
        happens(w);
      };
      w.begin(session, "\"o\"", 1);
      CHECK_FALSE(w.policy.inside);
      const std::string want = expected_outcome(stage, what);
      CHECK(w.outcome().substr(0, want.size()) == want);
      CHECK(other.sent.size() == 1);
    }
  }
}

TEST_CASE("a call that arrives during a step of another call starts after that step") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES;
  std::uint32_t sent_inside = 0;
  w.lane.inside = [&] {
    w.begin(w.session, "\"second\"", 1);
    sent_inside = w.lane.sent;
  };
  w.begin(1);
  CHECK(sent_inside == 1);
  CHECK(w.lane.sent == 2);
  CHECK(w.table.size() == 2);
  SECTION("the call is not sent if its client cancels it immediately") {
    w.policy.inside = nullptr;
    w.lane.inside = [&] {
      w.begin(w.session, "\"third\"", 1);
      w.ends.end_session(w.session);
    };
    w.begin(w.session, "\"fourth\"", 1);
    CHECK(w.lane.sent == 3);
    CHECK(w.table.size() == 0);
  }
}

TEST_CASE("clients and servers that respond during each call do not cause nesting") {
  World w;
  w.profile.limits.in_flight_per_session = 8;
  constexpr int calls = 5'000;
  int begun = 0, depth = 0, deepest = 0;
  std::function<void()> serve, next;
  serve = [&] {
    deepest = std::max(deepest, ++depth);
    w.find_call();
    w.server_answers(1);
    --depth;
  };
  next = [&] {
    deepest = std::max(deepest, ++depth);
    w.client.sent.clear();
    w.lane.inside = serve;
    w.client.inside = next;
    if (++begun < calls) w.begin(w.session, "\"c\"", 1);
    --depth;
  };
  next();
  CHECK(begun == calls);
  CHECK(deepest <= 2);
  CHECK(w.table.size() == 0);
  CHECK(w.exchange_table.size() == 0);
  // Slots are reused while the loop runs.
  CHECK((w.id & (CallTable::max_size - 1)) <= 2);
}

TEST_CASE(
    "a policy that changes its rules during each request is asked a limited number of times") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES;
  std::function<void()> change;
  change = [&] {
    w.calls.rules_changed();
    w.policy.inside = change;
  };
  w.policy.inside = change;
  w.begin(1);
  CHECK(w.policy.flags.size() == Calls::max_rounds);
  CHECK(w.lane.sent == 0);
  CHECK(w.outcome().find("the rules changed each time") != std::string::npos);
}

TEST_CASE("a call does not wait for a record that is committed while it is being written") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES;
  w.telemetry.needs = BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS;
  w.recorder.add_sink(&telemetry_table, &w.telemetry);
  std::function<void()> commit;
  commit = [&] {
    w.commit();
    w.telemetry.inside = commit;
  };
  w.telemetry.inside = commit;
  w.begin(1);
  CHECK(w.lane.sent == 1);
  w.server_answers(1);
  CHECK(w.answers_sent().size() == 1);
  CHECK_FALSE(w.answers.any_held());
  w.telemetry.inside = nullptr;
}

TEST_CASE("only the first event of each kind during a step has an effect and is stored") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES;
  w.policy.decides = BH_PENDING;
  w.policy.inside = [&] {
    w.find_call();
    for (int i = 0; i < 100; ++i) {
      w.decide(allow());
      w.decide(block());
    }
  };
  w.begin(1);
  CHECK(w.outcome() == "at server");
}

TEST_CASE("a response inside send() completes the call, and a second response is dropped") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES;
  w.lane.inside = [&] {
    w.find_call();
    w.server_answers(1);
    // The exchange is closed, so a second response would be a stray response.
    CHECK(w.table.get(w.id)->exchange == nullptr);
    CHECK(w.exchange_table.size() == 0);
    CHECK(w.lane.in_flight == 0);
  };
  w.begin(1);
  CHECK(w.outcome() == "result");
}

TEST_CASE(
    "a call allocates nothing in steady state, whether the response arrives inside send() or "
    "later") {
  World w;
  struct Silent final : ClientEnd {
    void send(const bh_outgoing &) override {}
    void session_ended(bh_session, std::string_view) override {}
  } silent;
  Session &session = open_session(w.sessions, silent);
  const std::string text =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__t","arguments":{}}})";
  mcp::Scan scan, answer_scan;
  mcp::ScanError error;
  REQUIRE(mcp::scan(text, &scan, &error));
  const std::string answer = R"({"jsonrpc":"2.0","id":7,"result":{"content":[],"more":")" +
                             std::string(200, 'y') + R"("}})";
  REQUIRE(mcp::scan(answer, &answer_scan, &error));
  bool at_once = false;
  const auto serve = [&] {
    w.call_answers.answered(*session.open_calls.head, {answer, &answer_scan});
  };
  Incoming request{{session.handle, 7, 0}, {text, &scan}, 1};
  CallInHand hand{request.message, {&w.lane, {}, scan.name}, {}, {}};
  hand.target.resolved.original_token = "\"t\"";
  const auto call = [&] {
    request.recorded = false;
    if (at_once) w.lane.inside = [&serve] { serve(); };
    w.calls.begin(session, request, hand);
    if (!at_once) serve();
  };
  w.gate.use(&policy_table, &w.policy);
  for (const bool inside : {false, true}) {
    INFO((inside ? "inside" : "later"));
    at_once = inside;
    call();  // the first call allocates slots in the tables
    w.loop->poll(0);
    const std::size_t before = count_allocations();
    for (int i = 0; i < 10; ++i) call();
    CHECK(count_allocations() == before);
    CHECK(w.table.size() == 0);
  }
}
