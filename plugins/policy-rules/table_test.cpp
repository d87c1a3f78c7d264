// Evaluates the 60 rules and 40 calls in tests/policy/table.json and compares the verdicts with the
// expected ones. policy-lists is also tested, with the rules that lists can express.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "../policy-lists/lists.hpp"
#include "rules_test.hpp"

using namespace bulkhead::rules;
using namespace bulkhead::rules::test;

namespace {

const rapidjson::Document &table() {
  static const rapidjson::Document document = [] {
    std::ifstream file(POLICY_TABLE);
    std::ostringstream text;
    text << file.rdbuf();
    rapidjson::Document out;
    out.Parse(text.str().c_str());
    REQUIRE_FALSE(out.HasParseError());
    return out;
  }();
  return document;
}

// A call from the table. Owns the JSON texts of the call.
struct TableCall {
  std::string arguments, meta, definition;
  Call call;

  explicit TableCall(const rapidjson::Value &row) {
    call = test::call(text(row, "server"), text(row, "tool"), "");
    arguments = json(row, "arguments");
    meta = json(row, "meta");
    definition = json(row, "definition");
    call.arguments = arguments;
    call.meta = meta;
    call.definition = definition;
    for (const auto &[key, field] : {std::pair{"principal", &call.principal},
                                     {"transport", &call.transport},
                                     {"peer", &call.peer},
                                     {"process", &call.process_name},
                                     {"method", &call.method}}) {
      if (row.HasMember(key)) *field = row[key].GetString();
    }
    call.session_calls = row.HasMember("calls") ? row["calls"].GetUint64() : 1;
    if (row.HasMember("age_s")) call.session_age_ns = row["age_s"].GetUint64() * 1'000'000'000;
    if (row.HasMember("session")) call.session = row["session"].GetUint64();
    if (row.HasMember("pinned")) call.pin = BH_PIN_SAME;
  }
  static std::string_view text(const rapidjson::Value &row, const char *key) {
    return row[key].GetString();
  }
  static std::string json(const rapidjson::Value &row, const char *key) {
    return row.HasMember(key) ? json_of(row[key]) : std::string();
  }
};

}  // namespace

TEST_CASE("40 calls have the expected verdicts under 60 rules") {
  World w(rules(json_of(table()["rules"])));
  CHECK(w.set.of(Event::request).size() == 61);  // including the default
  const auto &calls = table()["calls"].GetArray();
  REQUIRE(calls.Size() == 40);
  unsigned as_expected = 0;
  for (const auto &row : calls) {
    const TableCall call(row);
    INFO(json_of(row));
    const std::string expected = row["expect"].GetString();
    const Verdict verdict = w.judge.decide(w.set, call.call);
    const bool error = expected.starts_with("error ");
    const std::string wanted = error ? "block security.mcp.evaluation_error" : expected;
    CHECK(World::shown(verdict) == wanted);
    as_expected += World::shown(verdict) == wanted ? 1 : 0;
    if (error)
      has(std::string(verdict.reason), "rule security.rules.mcp." + expected.substr(6) + " ");
  }
  std::printf("policy table: 60 rules, %u calls, %u decided as expected\n", calls.Size(),
              as_expected);
}

TEST_CASE("policy-rules and policy-lists agree on rules that lists can express") {
  rapidjson::Document copy;
  copy.SetObject();
  for (const auto &rule : table()["rules"].GetObject()) {
    if (std::string_view(rule.name.GetString()).starts_with("n"))
      copy.AddMember(rapidjson::Value(rule.name, copy.GetAllocator()),
                     rapidjson::Value(rule.value, copy.GetAllocator()), copy.GetAllocator());
  }
  CHECK(copy.MemberCount() == 20);
  unsigned judged = 0, alike = 0;
  for (const std::string fallback : {"allow", "block"}) {
    World w(rules(json_of(copy), ",\"default\":\"" + fallback + "\""));
    std::string config = json_of(table()["lists"]);
    config.pop_back();
    const auto lists =
        bulkhead::lists::Lists::load(config + ",\"default_tool_permission\":\"" + fallback + "\"}");
    REQUIRE(lists.has_value());
    int blocked = 0;
    for (const auto &row : table()["calls"].GetArray()) {
      const TableCall call(row);
      if (call.call.method != "tools/call") continue;
      INFO(json_of(row));
      const bool by_rules = w.judge.decide(w.set, call.call).kind == BH_VERDICT_BLOCK;
      const bool by_lists = lists->decide(call.call.server, call.call.name).permission ==
                            bulkhead::lists::Permission::block;
      CHECK(by_rules == by_lists);
      ++judged;
      alike += by_rules == by_lists ? 1 : 0;
      CHECK(w.judge.shows(w.set, call.call) == !by_lists);
      blocked += by_lists ? 1 : 0;
    }
    CHECK(blocked > 3);
  }
  std::printf(
      "policy table: 20 rules that lists can express, %u decisions, both engines alike in %u\n",
      judged, alike);
}
