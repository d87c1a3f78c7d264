// Tests the state that a replacement of policy-rules takes over.
#include <random>

#include "counter_state.hpp"
#include "rules_test.hpp"
#include "state_codec.hpp"

using namespace bulkhead::rules;
using namespace bulkhead::rules::test;

namespace {

constexpr std::size_t kRoom = std::size_t{1} << 20;

std::string budget(std::string_view over, std::string_view more = "") {
  return rules(
      "{\"r\": {\"on\": \"mcp.request\", \"if\": \"true\", \"decision\": \"block\", "
      "\"over\": " +
      std::string(over) + "}" + std::string(more) + "}");
}
Call from(std::string_view principal, std::uint64_t session = 7, std::string_view args = "{}") {
  Call out = call("s", "t", args);
  out.principal = principal;
  out.session = session;
  return out;
}
std::string state_of(const World &w) {
  auto state = w.judge.export_state(kRoom);
  if (!state) FAIL(state.error());
  return std::move(*state);
}
// Creates a World that takes over the state of another one, with the same time.
struct Heir : World {
  Heir(const World &former, const std::string &json) : World(json) {
    steady = former.steady;
    const std::string state = state_of(former);
    if (!judge.import_state(set, state)) FAIL("the state is rejected");
  }
};

}  // namespace

TEST_CASE("state: a budget of calls continues in the replacement") {
  const std::string json = budget(R"({"calls": 5, "per": "1m", "by": ["principal"]})");
  World former(json);
  for (int i = 0; i < 3; ++i) CHECK(former.decide(from("anna")) == "allow");
  for (int i = 0; i < 5; ++i) CHECK(former.decide(from("bert")) == "allow");
  Heir next(former, json);
  for (int i = 0; i < 2; ++i) CHECK(next.decide(from("anna")) == "allow");
  CHECK(next.decide(from("anna")) == "block r");
  CHECK(next.decide(from("bert")) == "block r");
  for (int i = 0; i < 5; ++i) CHECK(next.decide(from("cleo")) == "allow");
  // The windows continue, too.
  World same(json);
  for (int i = 0; i < 5; ++i) same.decide(from("bert"));
  for (int i = 0; i < 12; ++i) {
    next.steady += 15'000;
    same.steady += 15'000;
    CHECK(next.decide(from("bert")) == same.decide(from("bert")));
  }
  // What is exported again is the same.
  Heir third(next, json);
  CHECK(state_of(third) == state_of(next));
}

TEST_CASE("state: budgets of bytes and of destinations continue in the replacement") {
  const std::string bytes = budget(R"({"bytes": 100, "by": []})");
  World former(bytes);
  CHECK(former.decide(from("anna", 1, R"({"x":"0123456789012345678901234567890123456789"})")) ==
        "allow");
  Heir next(former, bytes);
  CHECK(next.decide(from("anna", 1, R"({"x":"0123456789012345678901234567890123456789"})")) ==
        "allow");
  CHECK(next.decide(from("bert", 1, R"({"x":"0123456789012345678901234567890123456789"})")) ==
        "block r");

  const std::string hosts = budget(R"({"destinations": 2, "per": "1m"})");
  World visits(hosts);
  visits.steady = 600'000;
  CHECK(visits.decide(from("anna", 1, R"({"u":"http://one.example/"})")) == "allow");
  visits.steady += 60'000;
  CHECK(visits.decide(from("anna", 1, R"({"u":"http://two.example/"})")) == "allow");
  Heir more(visits, hosts);
  CHECK(more.decide(from("anna", 1, R"({"u":"http://one.example/x"})")) == "allow");
  CHECK(more.decide(from("anna", 1, R"({"u":"http://three.example/"})")) == "block r");
}

TEST_CASE("state: the result of a call that the former process has decided is counted") {
  const std::string json = budget(R"({"bytes": 100, "by": ["principal"]})");
  World former(json);
  CHECK(former.decide(from("anna")) == "allow");
  Heir next(former, json);
  next.judge.observe(next.set, from("anna"), std::string(100, ' '));
  CHECK(next.decide(from("anna")) == "block r");
}

TEST_CASE("state: a call that awaits approval is not counted again") {
  const std::string json = rules(R"j({
    "cap": {"on": "mcp.request", "priority": 1, "if": "true", "decision": "block",
            "over": {"calls": 1}},
    "look": {"on": "mcp.request", "priority": 2, "if": "true", "decision": "ask"}})j");
  World former(json);
  CHECK(former.decide(from("anna")) == "ask look");
  Heir next(former, json);
  Call again = from("anna");
  again.again = again.approved = true;
  CHECK(next.decide(again) == "ask look");
  Call other = from("anna");
  other.exchange = 2;
  CHECK(next.decide(other) == "block cap");
}

// A reload in the endpoint (one Judge, other rules) and one in a compartment (a new process) have
// the same effect on the counts.
namespace {

std::vector<std::string> after_reload(const std::string &before, const std::string &after,
                                      bool in_place) {
  World former(before);
  former.steady = 3'600'000;  // a window starts
  for (int i = 0; i < 4; ++i) CHECK(former.decide(from("anna")) == "allow");
  std::vector<std::string> verdicts;
  if (in_place) {
    former.set = good(after);
    for (int i = 0; i < 3; ++i) verdicts.push_back(former.decide(from("anna")));
  } else {
    Heir next(former, after);
    for (int i = 0; i < 3; ++i) verdicts.push_back(next.decide(from("anna")));
  }
  return verdicts;
}

}  // namespace

TEST_CASE("state: after a reload, the used amount counts against the new limit") {
  using Verdicts = std::vector<std::string>;
  const std::string before = budget(R"({"calls": 5, "per": "1m", "by": ["principal"]})");
  for (const bool in_place : {true, false}) {
    INFO(in_place);
    const auto now = [&](const char *over, const char *more = "") {
      return after_reload(before, budget(over, more), in_place);
    };
    const Verdicts one_more{"allow", "block r", "block r"};
    const Verdicts all{"allow", "allow", "allow"};
    // The same limit, and another rule that is added.
    CHECK(now(R"({"calls": 5, "per": "1m", "by": ["principal"]})") == one_more);
    CHECK(now(R"({"calls": 5, "per": "1m", "by": ["principal"]})",
              R"(, "z": {"on": "mcp.request", "if": "false", "decision": "block"})") == one_more);
    // Another limit.
    CHECK(now(R"({"calls": 3, "per": "1m", "by": ["principal"]})") ==
          Verdicts{"block r", "block r", "block r"});
    CHECK(now(R"({"calls": 7, "per": "1m", "by": ["principal"]})") == all);
    // Another window.
    CHECK(now(R"({"calls": 5, "per": "1h", "by": ["principal"]})") == one_more);
    CHECK(now(R"({"calls": 5, "per": "30s", "by": ["principal"]})") == one_more);
    CHECK(now(R"({"calls": 5, "by": ["principal"]})") == one_more);
    // A rule that counts something else begins again.
    CHECK(now(R"({"calls": 4, "per": "1m", "by": ["process"]})") == all);
    CHECK(now(R"({"bytes": 6, "per": "1m", "by": ["principal"]})") == all);
  }
}

TEST_CASE("state: counts of rules that do not exist are ignored") {
  World former(budget(R"({"calls": 1})"));
  CHECK(former.decide(from("anna")) == "allow");
  Heir next(former, rules("{}"));
  CHECK(next.decide(from("anna")) == "allow");
  Heir last(next, budget(R"({"calls": 1})"));
  CHECK(last.decide(from("anna")) == "allow");
  CHECK(last.decide(from("anna")) == "block r");
}

TEST_CASE("state: malformed states are rejected, and change nothing") {
  const std::string json = budget(R"({"calls": 2, "by": ["principal"]})");
  World former(json);
  CHECK(former.decide(from("anna")) == "allow");
  CHECK(former.decide(from("bert")) == "allow");
  const std::string state = state_of(former);
  World w(json);
  CHECK(w.decide(from("anna")) == "allow");
  CHECK(w.decide(from("anna")) == "allow");
  for (std::size_t n = 0; n < state.size(); ++n) {
    CHECK_FALSE(w.judge.import_state(w.set, state.substr(0, n)));
  }
  CHECK_FALSE(w.judge.import_state(w.set, state + '\0'));
  CHECK_FALSE(w.judge.import_state(w.set, std::string(10'000, '\xff')));
  CHECK(w.decide(from("anna")) == "block r");
  CHECK(w.judge.import_state(w.set, state));
  CHECK(w.decide(from("anna")) == "allow");
}

TEST_CASE("state: random states are rejected or leave a policy that works") {
  const std::string json = budget(R"({"calls": 3, "per": "1m", "by": ["session"]})");
  World former(json);
  for (std::uint64_t i = 0; i < 20; ++i) former.decide(from("anna", i));
  const std::string state = state_of(former);
  std::minstd_rand random(7);
  World w(json);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = state;
    const std::size_t changes = 1 + random() % 3;
    for (std::size_t n = 0; n < changes; ++n) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    if (random() % 4 == 0) text.resize(random() % text.size());
    if (w.judge.import_state(w.set, text)) ++accepted;
    if (i % 100 != 0) continue;
    // Whatever was imported, a new count has exactly its budget.
    w.steady += 1'000'000;
    for (int call = 0; call < 3; ++call) REQUIRE(w.decide(from("new", 1'000'000)) == "allow");
    REQUIRE(w.decide(from("new", 1'000'000)) == "block r");
    REQUIRE(w.judge.export_state(kRoom).has_value());
  }
  CHECK(accepted > 0);
}

TEST_CASE("state: values that no policy could have reached do not widen a budget") {
  const std::string json = budget(R"({"calls": 3, "per": "1m", "by": ["principal"]})");
  World w(json);
  const auto imported = [&](CounterState::Count count) {
    count.key = CounterState::split("security.rules.mcp.r\n4:anna");
    World former(json);
    former.decide(from("anna"));
    CounterState decoded;
    const std::string real = state_of(former);
    REQUIRE(decode(real, &decoded));
    REQUIRE(decoded.counts.size() == 1);
    REQUIRE(decoded.counts[0].key.whole() == count.key.whole());
    count.kind = decoded.counts[0].kind;
    CounterState state;
    state.counts.push_back(count);
    const auto text = encode(state, kRoom);
    REQUIRE(text.has_value());
    REQUIRE(w.judge.import_state(w.set, *text));
    return w.decide(from("anna"));
  };
  constexpr std::uint64_t huge = ~std::uint64_t{0};
  CounterState::Count count;
  count.per_ms = 60'000;
  count.now = huge;
  CHECK(imported(count) == "block r");  // the sum does not overflow
  count.before = huge;
  CHECK(imported(count) == "block r");
  count.per_ms = huge;
  CHECK(imported(count) == "block r");
  count.per_ms = 0;
  CHECK(imported(count) == "block r");
  count.idle_ms = huge;
  CHECK(imported(count) == "block r");
  // The same count twice: the first one counts, and none is added.
  CounterState twice;
  count.kind = 0;
  twice.counts = {count, count};
  const auto text = encode(twice, kRoom);
  REQUIRE(text.has_value());
  CHECK(w.judge.import_state(w.set, *text));
}

TEST_CASE("state: counts that can be evicted are omitted if there is no room for them") {
  const std::string json = budget(R"({"calls": 1, "by": ["session"]})",
                                  R"(, "p": {"on": "mcp.request", "if": "true", "priority": 99,
                                  "decision": "block", "over": {"calls": 1000, "by": "principal"}})");
  World former(json);
  for (std::uint64_t i = 0; i < 100; ++i) {
    ++former.steady;
    REQUIRE(former.decide(from("many", i)) == "allow");
  }
  ++former.steady;
  REQUIRE(former.decide(from("one", 1'000)) == "allow");
  const std::size_t all = state_of(former).size();
  const auto state = former.judge.export_state(all / 2);
  REQUIRE(state.has_value());
  CHECK(state->size() <= all / 2);
  World next(json);
  next.steady = former.steady;
  REQUIRE(next.judge.import_state(next.set, *state));
  // The principal with many sessions has lost its oldest ones, and others have lost nothing.
  CHECK(next.decide(from("many", 0)) == "allow");
  CHECK(next.decide(from("many", 99)) == "block r");
  CHECK(next.decide(from("one", 1'000)) == "block r");
  // Counts by principal are never omitted.
  const auto none = former.judge.export_state(100);
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().find("cannot be omitted") != std::string::npos);
}

TEST_CASE("state: numbers and texts are read as they were written") {
  StateWriter out;
  const std::vector<std::uint64_t> numbers{0, 127, 128, 300, 1ull << 32, ~std::uint64_t{0}};
  for (const std::uint64_t number : numbers) out.number(number);
  out.text("text");
  const std::string bytes = out.take();
  StateReader in(bytes);
  for (const std::uint64_t number : numbers) CHECK(in.number() == number);
  CHECK(in.text() == "text");
  CHECK(in.done());
  // More than 64 bits, and a length that exceeds the input.
  StateReader large("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
  CHECK(large.number() == 0);
  CHECK(large.failed());
  StateReader cut("\x05text");
  CHECK(cut.text().empty());
  CHECK(cut.failed());
}
