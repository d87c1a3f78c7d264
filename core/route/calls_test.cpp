// Tests every stage of a call with every event that can occur in it.
#include "route/calls.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "route/call_world.hpp"
#include "route/splice.hpp"

using namespace bulkhead;

TEST_CASE("each event in each stage has the expected result") {
  std::size_t seen = 0;
  for (const auto &[stage, reach] : stages) {
    for (const auto &[what, happen] : happenings) {
      INFO(stage << ": " << what);
      World w;
      reach(w);
      REQUIRE(w.outcome() == stage);
      happen(w);
      const std::string outcome = w.outcome();
      const std::string want = expected_outcome(stage, what);
      CHECK(outcome.substr(0, want.size()) == want);
      ++seen;
    }
  }
  CHECK(seen == stages.size() * happenings.size());
}

TEST_CASE("a call that is evaluated again is marked and is sent only once") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES;
  w.lane.queues = true;
  w.begin(1);
  w.calls.rules_changed();
  w.calls.rules_changed();
  w.lane.turn();
  CHECK(w.policy.flags == std::vector<std::uint32_t>{0, BH_REQUEST_AGAIN});
  CHECK(w.lane.sent == 1);
  w.server_answers(1);
  CHECK(w.outcome() == "result");
}

TEST_CASE("a call that is submitted again gets a new exchange and keeps its own number") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES;
  w.lane.queues = true;
  w.begin(1);
  const std::uint64_t first = w.table.get(w.id)->exchange->id;
  w.calls.rules_changed();
  w.lane.turn();
  REQUIRE(w.table.get(w.id) != nullptr);
  const std::uint64_t second = w.table.get(w.id)->exchange->id;
  CHECK(second != first);
  CHECK(w.exchange_table.get(first) == nullptr);
  CHECK(w.exchange_table.get(second)->call == w.table.get(w.id));
  CHECK(w.exchange_table.size() == 1);
}

namespace {

// The stages from which a call is sent to the server, with the event that ends each of them. A call
// that waits for approval may end before this event, if the tool's definition changes.
const std::map<std::string, std::string> before_sending = {
    {"checking", "no duplicates"}, {"deciding", "allowed"}, {"approving", "person: yes"},
    {"recording", "committed"},    {"queued", "its turn"},  {"asking", "ask answered"}};

// Brings a call into the stage, makes the server list another definition, and ends the stage.
std::string outcome_after_change(World &w, const std::string &stage, std::string_view definition) {
  w.server_lists("reads");
  stages.at(stage)(w);
  REQUIRE(w.outcome() == stage);
  w.server_lists(definition);
  for (const auto &[what, happen] : happenings) {
    if (what == before_sending.at(stage) && w.table.get(w.id) != nullptr) happen(w);
  }
  return w.outcome();
}

}  // namespace

TEST_CASE("a call that waits while its tool changes is refused if pins are enforced") {
  for (const auto &[stage, event] : before_sending) {
    INFO(stage);
    World w;
    w.enforce_pins();
    CHECK(outcome_after_change(w, stage, "evil")
              .starts_with(
                  "MCP request blocked by policy (tool-pin): the definition of this tool differs"));
    CHECK(w.lane.sent == (stage == "asking" ? 1 : 0));
  }
}

TEST_CASE("a call that waits while its tool disappears is refused if pins are enforced") {
  for (const auto &[stage, event] : before_sending) {
    INFO(stage);
    World w;
    w.enforce_pins();
    CHECK(outcome_after_change(w, stage, "").starts_with("Tool not found: server "));
    CHECK(w.lane.sent == (stage == "asking" ? 1 : 0));
  }
}

// A server may list its tools some time after it has started.
TEST_CASE("without enforced pins, a call whose tool disappears is sent unless it was approved") {
  for (const auto &[stage, event] : before_sending) {
    INFO(stage);
    World w;
    const std::string outcome = outcome_after_change(w, stage, "");
    if (stage == "approving") {
      CHECK(outcome.starts_with("Tool not found: server "));
    } else {
      CHECK(outcome == "at server");
    }
  }
}

TEST_CASE("a server cannot delay a call for ever by changes of its tool") {
  World w;
  w.server_lists("0");
  stages.at("deciding")(w);
  w.policy.decides = BH_PENDING;  // for each further request to the policy
  const auto allowed = std::find_if(happenings.begin(), happenings.end(),
                                    [](const auto &one) { return one.first == "allowed"; });
  int changes = 0;
  std::string outcome = w.outcome();
  while (outcome == "deciding" && changes < 100) {
    w.server_lists(std::to_string(++changes));
    allowed->second(w);
    outcome = w.outcome();
  }
  CHECK(changes == static_cast<int>(Calls::max_rounds) + 1);
  CHECK(outcome.find("changed each time") != std::string::npos);
  CHECK(w.lane.sent == 0);
}

TEST_CASE("without enforced pins, a call whose tool changes is evaluated again") {
  for (const auto &[stage, event] : before_sending) {
    if (stage == "approving") continue;
    INFO(stage);
    World w;
    CHECK(outcome_after_change(w, stage, "other") == "at server");
    REQUIRE(!w.policy.flags.empty());
    CHECK(w.policy.flags.back() == (stage == "checking" ? 0u : std::uint32_t{BH_REQUEST_AGAIN}));
  }
}

TEST_CASE("an approval does not cover a definition that changed before the call is sent") {
  SECTION("while the request is pending") {
    World w;
    CHECK(outcome_after_change(w, "approving", "other")
              .starts_with("MCP request blocked by policy (rule): needs approval, but the "
                           "definition of the tool changed"));
    CHECK(w.counters.approvals_allowed == 0);
  }
  SECTION("after the request was allowed") {
    World w;
    w.server_lists("reads");
    w.lane.queues = true;
    stages.at("approving")(w);
    w.calls.approval_given(w.id, true, ApprovalSurface::none, {});
    REQUIRE(w.outcome() == "queued");
    w.server_lists("other");
    w.lane.turn();
    CHECK(w.outcome().find("the definition of the tool changed") != std::string::npos);
  }
}

namespace {

// A server with a pool of two connections. The World's lane is the first one and receives all
// calls, because the second one is never ready; `lists` provides its list.
struct PooledWorld : World {
  static inline const bh_connector connector{
      sizeof(bh_connector),
      0,
      [](void *, bh_lane, const bh_lane_info *, void **, bh_error *error) -> bh_status {
        return bh::fail(error, BH_E_UNAVAILABLE, "it is not connected");
      },
      nullptr,
      nullptr,
      nullptr,
      nullptr};
  FakeLane lists{*this, upstream, 0, 0};

  PooledWorld() {
    ServerDef def = server_named("s");
    def.pool_size = 2;
    def.pool_safe_tools = {"t"};
    upstream.redefine(def);
    upstream.connector = &connector;
    upstream.fill_pool(lane);
    REQUIRE(upstream.lanes().size() == 1);
  }
  ~PooledWorld() override { upstream.remove(upstream.lanes()[0].get()); }
  Lane &second() { return *upstream.lanes()[0]; }
  // The second connection lists the tool "t" with this description.
  void second_lists(const std::string &description) {
    lists.list(ItemKind::tool,
               R"({"tools":[{"name":"t","description":")" + description + R"("}]})");
    second().inherit(lists);
    pins.listed(second());
    items_changed(second());
  }
  void enforce() {
    profile.pins.mode = PinRules::Mode::enforce;
    pins.use_profile({});
    server_lists("reads");
    second_lists("reads");
  }
};

void end_stage(World &w, const std::string &stage) {
  for (const auto &[what, happen] : happenings) {
    if (what == before_sending.at(stage) && w.table.get(w.id) != nullptr) happen(w);
  }
}

}  // namespace

TEST_CASE(
    "a call that waits is refused if another connection of the pool reports a new definition") {
  for (const auto &[stage, event] : before_sending) {
    INFO(stage);
    PooledWorld w;
    w.enforce();
    stages.at(stage)(w);
    REQUIRE(w.outcome() == stage);
    w.second_lists("evil");
    end_stage(w, stage);
    CHECK(w.outcome().starts_with(
        "MCP request blocked by policy (tool-pin): the definition of this tool differs"));
    CHECK(w.lane.sent == (stage == "asking" ? 1 : 0));
    CHECK(w.counters.approvals_allowed == 0);
  }
}

TEST_CASE("calls are refused until each connection of the pool lists the approved definition") {
  PooledWorld w;
  w.enforce();
  w.second_lists("evil");
  SECTION("it has not returned to the approved definition") {
    w.begin(1);
    CHECK(w.outcome().find("tool-pin") != std::string::npos);
    CHECK(w.lane.sent == 0);
  }
  SECTION("it has returned to the approved definition") {
    w.second_lists("reads");
    w.begin(1);
    CHECK(w.outcome() == "at server");
  }
}

TEST_CASE("a pool whose connections list the approved definition, or not the tool, is called") {
  const bool listed = GENERATE(true, false);
  for (const auto &[stage, event] : before_sending) {
    INFO(stage);
    PooledWorld w;
    w.enforce();
    stages.at(stage)(w);
    w.second_lists("reads");
    if (!listed) {
      w.lists.list(ItemKind::tool, R"({"tools":[]})");
      w.second().inherit(w.lists);
      w.items_changed(w.second());
    }
    end_stage(w, stage);
    CHECK(w.outcome() == "at server");
  }
}

TEST_CASE("a call is not sent on the connection of a pool that lists another definition by then") {
  PooledWorld w;
  w.policy.needs = BH_POLICY_DECIDES;
  w.server_lists("reads");
  w.lists.list(ItemKind::tool, R"({"tools":[{"name":"t","description":"reads"}]})");
  stages.at("queued")(w);
  // The call waits in the other connection.
  Exchange &e = *w.table.get(w.id)->exchange;
  w.lane.detach(e);
  w.lists.attach(e);
  w.lists.queue = std::exchange(w.lane.queue, {});
  w.lane.queues = false;
  SECTION("it lists the same definition") {
    w.lists.turn();
    CHECK(w.lists.sent == 1);
    CHECK(w.policy.flags.size() == 1);
    w.lists.detach(*w.table.get(w.id)->exchange);
    w.lane.attach(*w.table.get(w.id)->exchange);
  }
  SECTION("its definition has changed") {
    w.lists.list(ItemKind::tool, R"({"tools":[{"name":"t","description":"writes"}]})");
    w.lists.turn();
    CHECK(w.lists.sent == 0);
    CHECK(w.lane.sent == 1);
    CHECK(w.policy.flags == std::vector<std::uint32_t>{0, BH_REQUEST_AGAIN});
  }
  CHECK(w.outcome() == "at server");
}

TEST_CASE("a list that leaves the tool's definition unchanged does not affect waiting calls") {
  for (const auto &[stage, event] : before_sending) {
    INFO(stage);
    World w;
    w.enforce_pins();
    CHECK(outcome_after_change(w, stage, "reads") == "at server");
  }
}

TEST_CASE("a policy that is asked again is informed that a human approver has allowed the call") {
  World w;
  stages.at("approving")(w);
  w.calls.approval_given(w.id, true, ApprovalSurface::none, {});
  CHECK(w.policy.flags == std::vector<std::uint32_t>{0, BH_REQUEST_AGAIN | BH_REQUEST_APPROVED});
  CHECK(w.lane.sent == 1);
}

TEST_CASE("the policy is notified once if a call ends while the policy is evaluating it") {
  for (const std::string stage : {"deciding", "answer deciding"}) {
    World w;
    stages.at(stage)(w);
    w.ends.end_session(w.session);
    CHECK(w.unanswered == std::vector<std::uint64_t>{w.id});
  }
}

TEST_CASE("a server is notified of a cancelled call only if it has received the call") {
  World sent, waits;
  stages.at("at server")(sent);
  sent.ends.end_session(sent.session);
  CHECK(sent.lane.retracts == 1);
  CHECK(sent.lane.retraction == BH_CANCEL_CLIENT_GONE);
  stages.at("deciding")(waits);
  CHECK(waits.ends.waiting_for(waits.lane) == std::vector<std::uint64_t>{waits.id});
  waits.ends.end_session(waits.session);
  CHECK(waits.lane.retracts == 0);
}

TEST_CASE("a server receives the reason why its call is cancelled") {
  std::uint32_t expected = BH_CANCEL_OTHER;
  World w;
  stages.at("at server")(w);
  Call &call = *w.table.get(w.id);
  SECTION("removed") {
    w.ends.end_drained(call, "it was removed");
    expected = BH_CANCEL_REMOVED;
  }
  SECTION("no input in time") {
    w.ends.end_unanswered(call, "too late");
    expected = BH_CANCEL_DEADLINE;
  }
  SECTION("timed out") {
    w.calls.timed_out(call);
    expected = BH_CANCEL_DEADLINE;
  }
  SECTION("stopping") {
    w.ends.end_all();
    expected = BH_CANCEL_SHUTDOWN;
  }
  SECTION("makes room") {
    w.ends.end_evicted(call, "too many calls wait");
  }
  CHECK(w.lane.retracts == 1);
  CHECK(w.lane.retraction == expected);
}

TEST_CASE("an answer that cannot be rewritten becomes an error, and nothing of it is sent") {
  World w;
  w.telemetry.needs = BH_TELEMETRY_TEXTS;
  w.recorder.add_sink(&telemetry_table, &w.telemetry);
  stages.at("at server")(w);
  Call &call = *w.table.get(w.id);
  Scanned answer(R"({"jsonrpc":"2.0","id":)" + std::to_string(call.exchange->id) +
                 R"(,"result":{"y":"secret"}})");
  // No answer has such a range: it extends beyond the message, so the edit is invalid.
  answer.scan.id.end = static_cast<std::uint32_t>(answer.text.size()) + 1;
  w.call_answers.answered(call, answer.get());
  const std::vector<std::string> sent = w.answers_sent();
  REQUIRE(sent.size() == 1);
  CHECK(mcp::member(sent[0], "id") == "\"c\"");
  CHECK(mcp::member(mcp::member(sent[0], "error"), "code") == "-32603");
  CHECK(sent[0].find("secret") == std::string::npos);
  CHECK(w.outcome() == std::string("tool call failed: ") + Splice::failure);
}
