// Tests that several policies can be combined, and that they are asked one after another.
#include "embed/policy_stack.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <functional>

#include "bulkhead/cpp/basics.hpp"

using namespace bulkhead;

namespace {

constexpr std::uint32_t all = BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS |
                              BH_POLICY_READS_RESULTS | BH_POLICY_FILTERS_LISTS;

// A policy that the test implements.
struct Engine {
  std::uint32_t needs = all;
  bh_status status = BH_OK;
  std::uint32_t verdict = BH_VERDICT_ALLOW;
  std::string rule, reason, rewrite;
  std::uint32_t flags = 0;
  struct Asked {
    std::string server, arguments, definition, result;
    std::uint32_t flags = 0;
    bool operator==(const Asked &) const = default;
  };
  std::vector<Asked> asked;

  bh_status answer(const bh_policy_request &r, std::string_view result, bh_verdict *out) {
    asked.push_back({std::string(bh::view(r.server)), std::string(bh::view(r.arguments)),
                     std::string(bh::view(r.definition)), std::string(result), r.flags});
    if (out == nullptr || status != BH_OK) return status;
    *out = verdict_of();
    return BH_OK;
  }
  bh_verdict verdict_of() const {
    bh_verdict out{};
    out.size = sizeof out;
    out.verdict = verdict;
    out.rule = bh::str(rule);
    out.reason = bh::str(reason);
    out.arguments = bh::str(rewrite);
    out.flags = flags;
    return out;
  }
};

Engine &engine(void *self) {
  return *static_cast<Engine *>(self);
}

constexpr bh_policy table{sizeof(bh_policy),
                          0,
                          [](void *self) { return engine(self).needs; },
                          [](void *self, const bh_policy_request *r, bh_verdict *out, bh_error *) {
                            return engine(self).answer(*r, {}, out);
                          },
                          [](void *self, const bh_policy_request *r, bh_str result, bh_verdict *out,
                             bh_error *) { return engine(self).answer(*r, bh::view(result), out); },
                          [](void *self, const bh_policy_request *r, bh_error *error) {
                            const bh_status status = engine(self).answer(*r, {}, nullptr);
                            return status < 0 ? bh::fail(error, status, "cannot filter") : status;
                          },
                          nullptr};

struct Stack {
  std::deque<Engine> engines;
  PolicyStack stack;
  Gate gate;            // used like the gate of the router
  std::string failure;  // set by filtered()

  explicit Stack(std::size_t n, std::uint64_t kept_bytes = 1 << 20)
      : engines(n), kept_bytes_(kept_bytes) {
    use();
  }
  void use() {
    std::vector<PolicyStack::Engine> all_of_them;
    for (Engine &one : engines) all_of_them.push_back({&table, &one});
    stack.use(std::move(all_of_them), kept_bytes_);
    gate.use(&PolicyStack::table(), &stack);
  }
  // The strings of the request are destroyed on return, as they are for a real message.
  Gate::Decision decide(std::uint64_t exchange = 1, std::uint32_t flags = 0) {
    std::string server = "s", arguments = R"({"n":1})", definition = R"({"name":"t"})";
    bh_policy_request request{};
    request.size = sizeof request;
    request.exchange = exchange;
    request.flags = flags;
    request.server = bh::str(server);
    request.arguments = bh::str(arguments);
    request.definition = bh::str(definition);
    Gate::Decision out = gate.decide(request);
    server.assign(server.size(), '?');
    arguments.assign(arguments.size(), '?');
    return out;
  }
  Gate::Decision observe(const std::string &result) {
    bh_policy_request request{};
    request.size = sizeof request;
    request.exchange = 1;
    return gate.observe(request, result);
  }
  Gate::Shown shows(const bh_policy_request &request) const {
    std::string why;
    return gate.shows(request, &why);
  }
  Gate::Shown filtered(std::uint64_t question, bool listed, const Engine *who) {
    return stack.filtered(question, listed, who, &failure);
  }
  Gate::Decision answered(std::size_t i, std::uint64_t exchange = 1) {
    engines[i].status = BH_OK;
    return stack.answered(exchange, Gate::from(engines[i].verdict_of()), &engines[i]);
  }

 private:
  std::uint64_t kept_bytes_;
};

}  // namespace

TEST_CASE("a call passes when every policy allows it") {
  Stack s(3);
  s.engines[1].rule = "r2";
  const auto decision = s.decide();
  CHECK(decision.verdict == Gate::Verdict::allow);
  CHECK(decision.rule == "r2");
  for (const Engine &one : s.engines) CHECK(one.asked.size() == 1);
}

TEST_CASE("the first refusal is final: later policies are not asked and cannot override it") {
  Stack s(3);
  s.engines[0].verdict = BH_VERDICT_BLOCK;
  s.engines[0].rule = "corp";
  const auto decision = s.decide();
  CHECK(decision.verdict == Gate::Verdict::refuse);
  CHECK_FALSE(decision.asks);
  CHECK(decision.rule == "corp");
  CHECK(s.engines[1].asked.empty());
  CHECK(s.engines[2].asked.empty());
}

TEST_CASE("a failure of any policy is a refusal") {
  const auto at = GENERATE(0, 1);
  Stack s(2);
  Engine &bad = s.engines[static_cast<std::size_t>(at)];
  SECTION("an error") {
    bad.status = BH_E_INTERNAL;
  }
  SECTION("an unknown verdict") {
    bad.verdict = 99;
  }
  SECTION("a rewrite that is not JSON") {
    bad.verdict = BH_VERDICT_REWRITE;
    bad.rewrite = "{";
  }
  SECTION("an ambiguous rewrite") {
    bad.verdict = BH_VERDICT_REWRITE;
    bad.rewrite = R"({"a":1,"a":2})";
  }
  const auto decision = s.decide();
  CHECK(decision.verdict == Gate::Verdict::refuse);
  CHECK(decision.rule == Gate::failed_rule);
}

TEST_CASE("each policy receives the data that it reads, as rewritten by earlier policies") {
  Stack s(3);
  s.engines[0].verdict = BH_VERDICT_REWRITE;
  s.engines[0].rewrite = R"({"n":2})";
  s.engines[0].rule = "mask";
  s.engines[1].needs = BH_POLICY_DECIDES;
  s.engines[2].needs = all | BH_POLICY_READS_DEFINITION;
  s.use();
  const auto decision = s.decide();
  CHECK(decision.verdict == Gate::Verdict::rewrite);
  CHECK(decision.replacement == R"({"n":2})");
  CHECK(decision.rule == "mask");
  CHECK(s.engines[0].asked[0] == Engine::Asked{"s", R"({"n":1})", "", ""});
  CHECK(s.engines[1].asked[0] == Engine::Asked{"s", "", "", ""});
  CHECK(s.engines[2].asked[0] == Engine::Asked{"s", R"({"n":2})", R"({"name":"t"})", ""});
}

TEST_CASE("a policy that does not decide is not asked for a decision") {
  Stack s(2);
  s.engines[0].needs = BH_POLICY_READS_RESULTS;
  s.engines[0].verdict = BH_VERDICT_BLOCK;
  s.use();
  CHECK(s.decide().verdict == Gate::Verdict::allow);
  CHECK(s.observe("{}").verdict == Gate::Verdict::refuse);
}

TEST_CASE("approval requirements of several policies are combined into one") {
  Stack s(3);
  s.engines[0].verdict = s.engines[2].verdict = BH_VERDICT_ASK;
  s.engines[0].rule = "a";
  s.engines[0].reason = "because";
  s.engines[1].rule = "b";
  s.engines[2].rule = "c";
  SECTION("the approval request names all rules") {
    const auto decision = s.decide();
    CHECK(decision.verdict == Gate::Verdict::refuse);
    CHECK(decision.asks);
    CHECK(decision.rule == "a, c");
    CHECK(decision.reason == "because");
    CHECK(decision.action == BH_VERDICT_ASK);
  }
  SECTION("if a policy blocks the call, approval is not required") {
    s.engines[2].verdict = BH_VERDICT_BLOCK;
    const auto decision = s.decide();
    CHECK(decision.verdict == Gate::Verdict::refuse);
    CHECK_FALSE(decision.asks);
    CHECK(decision.rule == "c");
  }
  SECTION("a call that requires approval cannot be rewritten afterwards") {
    s.engines[1].verdict = BH_VERDICT_REWRITE;
    s.engines[1].rewrite = "{}";
    const auto decision = s.decide();
    CHECK_FALSE(decision.asks);
    CHECK(decision.rule == Gate::failed_rule);
  }
}

TEST_CASE("only a policy that required approval is notified that the call was approved") {
  constexpr std::uint32_t again = BH_REQUEST_AGAIN, yes = BH_REQUEST_AGAIN | BH_REQUEST_APPROVED;
  Stack s(3);
  s.engines[1].verdict = BH_VERDICT_ASK;
  s.engines[1].rule = "b";
  const auto flags = [&](std::size_t i) { return s.engines[i].asked.back().flags; };
  SECTION("immediately") {
    REQUIRE(s.decide(7).asks);
    REQUIRE(s.decide(7, yes).asks);
    CHECK(flags(0) == again);
    CHECK(flags(1) == yes);
    CHECK(flags(2) == again);
  }
  SECTION("after delayed verdicts") {
    s.engines[0].status = s.engines[1].status = BH_PENDING;
    REQUIRE(s.decide(7).verdict == Gate::Verdict::pending);
    REQUIRE(s.answered(0, 7).verdict == Gate::Verdict::pending);
    REQUIRE(s.answered(1, 7).asks);
    s.engines[0].status = BH_PENDING;
    REQUIRE(s.decide(7, yes).verdict == Gate::Verdict::pending);
    REQUIRE(s.answered(0, 7).asks);
    CHECK(flags(0) == again);
    CHECK(flags(1) == yes);
    CHECK(flags(2) == again);
  }
  SECTION("not for another call") {
    REQUIRE(s.decide(7).asks);
    static_cast<void>(s.decide(8, yes));
    CHECK(flags(1) == again);
  }
  SECTION("not after the call has finished") {
    REQUIRE(s.decide(7).asks);
    s.stack.forget(7);
    static_cast<void>(s.decide(7, yes));
    CHECK(flags(1) == again);
  }
}

TEST_CASE("a delayed verdict resumes the evaluation") {
  Stack s(3);
  s.engines[1].status = s.engines[2].status = BH_PENDING;
  s.engines[0].verdict = BH_VERDICT_REWRITE;
  s.engines[0].rewrite = R"({"n":2})";
  REQUIRE(s.decide().verdict == Gate::Verdict::pending);
  CHECK(s.engines[2].asked.empty());
  SECTION("up to the last policy") {
    REQUIRE(s.answered(1).verdict == Gate::Verdict::pending);
    REQUIRE(s.engines[2].asked.size() == 1);
    CHECK(s.engines[2].asked[0] == Engine::Asked{"s", R"({"n":2})", "", ""});
    const auto decision = s.answered(2);
    CHECK(decision.verdict == Gate::Verdict::rewrite);
    CHECK(decision.replacement == R"({"n":2})");
    CHECK(s.answered(2).verdict == Gate::Verdict::pending);  // a second verdict is dropped
  }
  SECTION("until a policy refuses") {
    s.engines[1].verdict = BH_VERDICT_BLOCK;
    CHECK(s.answered(1).verdict == Gate::Verdict::refuse);
    CHECK(s.engines[2].asked.empty());
  }
  SECTION("not with the verdict of a policy that was not asked") {
    s.engines[2].status = BH_OK;
    CHECK(s.stack.answered(1, {}, &s.engines[2]).verdict == Gate::Verdict::pending);
    CHECK(s.engines[2].asked.empty());
    CHECK(s.answered(1).verdict == Gate::Verdict::rewrite);
  }
  SECTION("not if the verdict is not needed any longer") {
    s.stack.forget(1);
    CHECK(s.answered(1).verdict == Gate::Verdict::pending);
    CHECK(s.engines[2].asked.empty());
  }
}

TEST_CASE("the body of a message that is not a call reaches policies that do not read arguments") {
  Stack s(2);
  for (Engine &one : s.engines) one.needs = BH_POLICY_JUDGES_INPUT;
  s.use();
  bh_policy_request request{};
  request.size = sizeof request;
  request.exchange = 3;
  request.event = BH_EVENT_INPUT_RESPONSE;
  request.arguments = bh::str(R"({"secret":1})");
  CHECK(s.gate.decide(request).verdict == Gate::Verdict::allow);
  for (const Engine &one : s.engines) {
    REQUIRE(one.asked.size() == 1);
    CHECK(one.asked[0].arguments == R"({"secret":1})");
  }
}

TEST_CASE("a request whose evaluation began under the previous rules is not completed under them") {
  Stack s(2);
  s.engines[1].status = BH_PENDING;
  SECTION("a call is evaluated again, and is not counted twice") {
    REQUIRE(s.decide().verdict == Gate::Verdict::pending);
    s.stack.rules_changed();
    CHECK(s.answered(1).verdict == Gate::Verdict::allow);
    for (const Engine &one : s.engines) {
      REQUIRE(one.asked.size() == 2);
      CHECK(one.asked[0].flags == 0);
      CHECK(one.asked[1].flags == BH_REQUEST_AGAIN);
      CHECK(one.asked[1].arguments == one.asked[0].arguments);
    }
  }
  SECTION("a policy that was not asked yet counts the call") {
    s.engines[0].status = BH_PENDING;
    REQUIRE(s.decide().verdict == Gate::Verdict::pending);
    s.stack.rules_changed();
    REQUIRE(s.answered(0).verdict == Gate::Verdict::pending);
    CHECK(s.engines[0].asked[1].flags == BH_REQUEST_AGAIN);
    REQUIRE(s.engines[1].asked.size() == 1);
    CHECK(s.engines[1].asked[0].flags == 0);
    CHECK(s.answered(1).verdict == Gate::Verdict::allow);
  }
  SECTION("a refusal is final") {
    REQUIRE(s.decide().verdict == Gate::Verdict::pending);
    s.stack.rules_changed();
    s.engines[1].verdict = BH_VERDICT_BLOCK;
    const auto decision = s.answered(1);
    CHECK(decision.verdict == Gate::Verdict::refuse);
    CHECK_FALSE(decision.asks);
    CHECK(s.engines[0].asked.size() == 1);
    CHECK(s.engines[1].asked.size() == 1);
  }
  SECTION("a policy that requires approval has not counted the call") {
    REQUIRE(s.decide().verdict == Gate::Verdict::pending);
    s.stack.rules_changed();
    s.engines[1].verdict = BH_VERDICT_ASK;
    CHECK(s.answered(1).asks);
    REQUIRE(s.engines[1].asked.size() == 2);
    CHECK(s.engines[0].asked[1].flags == BH_REQUEST_AGAIN);
    CHECK(s.engines[1].asked[1].flags == 0);
  }
  SECTION("a policy that was skipped has not counted the call") {
    s.engines[0].needs = BH_POLICY_READS_RESULTS;
    s.use();
    REQUIRE(s.decide().verdict == Gate::Verdict::pending);
    s.stack.rules_changed();
    s.engines[0].needs = BH_POLICY_DECIDES;
    s.use();
    CHECK(s.answered(1).verdict == Gate::Verdict::allow);
    REQUIRE(s.engines[0].asked.size() == 1);
    CHECK(s.engines[0].asked[0].flags == 0);
    CHECK(s.engines[1].asked[1].flags == BH_REQUEST_AGAIN);
  }
  SECTION("the new rules decide") {
    REQUIRE(s.decide().verdict == Gate::Verdict::pending);
    s.stack.rules_changed();
    s.engines[0].verdict = BH_VERDICT_BLOCK;
    CHECK(s.answered(1).verdict == Gate::Verdict::refuse);
    CHECK(s.engines[1].asked.size() == 1);
  }
  SECTION("what a policy has rewritten is rewritten again") {
    s.engines[0].verdict = BH_VERDICT_REWRITE;
    s.engines[0].rewrite = R"({"n":2})";
    REQUIRE(s.decide().verdict == Gate::Verdict::pending);
    s.stack.rules_changed();
    s.engines[0].rewrite = R"({"n":3})";
    const auto decision = s.answered(1);
    CHECK(decision.replacement == R"({"n":3})");
    CHECK(s.engines[0].asked[1].arguments == s.engines[0].asked[0].arguments);
    CHECK(s.engines[1].asked[1].arguments == R"({"n":3})");
  }
  SECTION("a call is refused if the new rules need data that was not kept") {
    for (Engine &one : s.engines) one.needs = BH_POLICY_DECIDES;
    s.use();
    REQUIRE(s.decide().verdict == Gate::Verdict::pending);
    s.stack.rules_changed();
    s.engines[0].needs = BH_POLICY_DECIDES | BH_POLICY_READS_DEFINITION;
    s.use();
    const auto decision = s.answered(1);
    CHECK(decision.verdict == Gate::Verdict::refuse);
    CHECK(decision.reason.find("the rules were replaced") != std::string::npos);
    CHECK(s.engines[0].asked.size() == 1);
  }
  SECTION("a result is evaluated again") {
    REQUIRE(s.observe(R"({"n":1})").verdict == Gate::Verdict::pending);
    s.stack.rules_changed();
    CHECK(s.answered(1).verdict == Gate::Verdict::allow);
    CHECK(s.engines[0].asked[1].result == R"({"n":1})");
  }
  SECTION("a list item is evaluated again") {
    bh_policy_request request{};
    request.size = sizeof request;
    request.exchange = 7;
    REQUIRE(s.shows(request) == Gate::Shown::pending);
    s.stack.rules_changed();
    s.engines[0].status = BH_E_DENIED;
    CHECK(s.filtered(7, true, &s.engines[1]) == Gate::Shown::no);
    CHECK(s.engines[0].asked.size() == 2);
  }
  SECTION("later requests are not affected") {
    s.stack.rules_changed();
    REQUIRE(s.decide().verdict == Gate::Verdict::pending);
    CHECK(s.answered(1).verdict == Gate::Verdict::allow);
  }
}

TEST_CASE(
    "results pass all policies, and the client receives the result that the last policy "
    "evaluated") {
  Stack s(2);
  s.engines[0].verdict = BH_VERDICT_REWRITE;
  s.engines[0].rewrite = R"({"masked":true})";
  s.engines[1].status = BH_PENDING;
  REQUIRE(s.observe(R"({"secret":1})").verdict == Gate::Verdict::pending);
  CHECK(s.engines[1].asked[0].result == R"({"masked":true})");
  SECTION("allowed") {
    const auto decision = s.answered(1);
    CHECK(decision.verdict == Gate::Verdict::rewrite);
    CHECK(decision.replacement == R"({"masked":true})");
  }
  SECTION("withheld") {
    s.engines[1].verdict = BH_VERDICT_ASK;  // a refusal, because a result cannot require approval
    CHECK(s.answered(1).verdict == Gate::Verdict::refuse);
  }
}

TEST_CASE("an item is listed if no policy hides it") {
  Stack s(2);
  bh_policy_request request{};
  request.size = sizeof request;
  request.exchange = 7;
  CHECK(s.shows(request) == Gate::Shown::yes);
  s.engines[1].status = BH_E_DENIED;
  CHECK(s.shows(request) == Gate::Shown::no);
  s.engines[0].status = BH_PENDING;
  REQUIRE(s.shows(request) == Gate::Shown::pending);
  CHECK(s.filtered(7, true, &s.engines[0]) == Gate::Shown::no);
  s.engines[1].status = BH_OK;
  REQUIRE(s.shows(request) == Gate::Shown::pending);
  CHECK(s.filtered(7, true, &s.engines[0]) == Gate::Shown::yes);
}

TEST_CASE("an item is not listed if a policy fails, and the reason is returned") {
  Stack s(2);
  bh_policy_request request{};
  request.size = sizeof request;
  request.exchange = 7;
  std::string why;
  s.engines[1].status = BH_E_DENIED;
  CHECK(s.gate.shows(request, &why) == Gate::Shown::no);
  CHECK(why.empty());
  s.engines[1].status = BH_E_IO;
  CHECK(s.gate.shows(request, &why) == Gate::Shown::no);
  CHECK(why.find("cannot filter") != std::string::npos);
  s.engines[0].status = BH_PENDING;  // the second policy is asked after the first has answered
  REQUIRE(s.shows(request) == Gate::Shown::pending);
  CHECK(s.filtered(7, true, &s.engines[0]) == Gate::Shown::no);
  CHECK(s.failure.find("cannot filter") != std::string::npos);
}

TEST_CASE("stored requests are limited in size; above the limit, calls are refused") {
  Stack s(2, 50);
  s.engines[0].status = BH_PENDING;
  REQUIRE(s.decide(1).verdict == Gate::Verdict::pending);
  REQUIRE(s.decide(2).verdict == Gate::Verdict::pending);
  const auto refused = s.decide(3);
  CHECK(refused.verdict == Gate::Verdict::refuse);
  CHECK(refused.reason.find("limits.policy_waiting_bytes") != std::string::npos);
  CHECK(s.engines[0].asked.size() == 2);
  CHECK(s.answered(0, 1).verdict == Gate::Verdict::allow);
  s.stack.forget(2);
  s.engines[0].status = BH_PENDING;
  CHECK(s.decide(3).verdict == Gate::Verdict::pending);
}

TEST_CASE("a single policy is asked directly, without storing requests") {
  Stack s(1, 0);  // the limit permits no stored requests
  s.engines[0].status = BH_PENDING;
  REQUIRE(s.decide().verdict == Gate::Verdict::pending);
  CHECK(s.engines[0].asked[0] == Engine::Asked{"s", R"({"n":1})", R"({"name":"t"})", ""});
  s.engines[0].verdict = BH_VERDICT_ASK;
  CHECK(s.answered(0).asks);
}

TEST_CASE("events are allowed or refused by the policies that evaluate them") {
  Stack s(2);
  s.engines[0].needs = BH_POLICY_DECIDES;
  s.engines[1].needs = BH_POLICY_JUDGES_INPUT;
  s.use();
  bh_policy_request request{};
  request.size = sizeof request;
  request.event = BH_EVENT_INPUT_REQUEST;
  CHECK(s.gate.decide(request).verdict == Gate::Verdict::allow);
  CHECK(s.engines[0].asked.empty());
  REQUIRE(s.engines[1].asked.size() == 1);
  s.engines[1].verdict = BH_VERDICT_ASK;
  CHECK(s.gate.decide(request).verdict == Gate::Verdict::refuse);
  request.event = BH_EVENT_NOTIFICATION;
  CHECK(s.gate.decide(request).verdict == Gate::Verdict::allow);
  CHECK(s.engines[1].asked.size() == 2);
}
