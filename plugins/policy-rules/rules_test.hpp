// Helpers for the policy-rules tests: they create configurations and calls, and format verdicts.
#pragma once

#include <catch2/catch.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "judge.hpp"
#include "rule_set.hpp"

namespace bulkhead::rules::test {

inline std::string layer(std::string_view name, std::string_view sections,
                         std::string_view lines = "{}") {
  return "{\"layer\":\"" + std::string(name) + "\",\"file\":\"" + std::string(name) +
         ".toml\",\"sections\":" + std::string(sections) + ",\"lines\":" + std::string(lines) + "}";
}
inline std::string config(const std::vector<std::string> &layers) {
  std::string all;
  for (const std::string &each : layers) all += (all.empty() ? "" : ",") + each;
  return "{\"profile_rules\":[" + all + "]}";
}
// Returns a configuration whose user profile has this [security] table, given as JSON.
inline std::string security(std::string_view content) {
  return config({layer("file", "{\"security\":" + std::string(content) + "}")});
}
// Returns a configuration whose user profile has this [security.rules.mcp] table, given as JSON.
inline std::string rules(std::string_view content, std::string_view more = "") {
  return security("{\"rules\":{\"mcp\":" + std::string(content) + "}" + std::string(more) + "}");
}

inline RuleSet good(const std::string &json) {
  auto set = RuleSet::load(json);
  if (!set.has_value()) {
    std::string all;
    for (const std::string &fault : set.error()) all += fault + "\n";
    FAIL("the rules were rejected:\n" << all);
  }
  return std::move(*set);
}
inline std::string bad(const std::string &json) {
  const auto set = RuleSet::load(json);
  if (set.has_value()) FAIL("the rules were accepted: " << json);
  std::string all;
  for (const std::string &fault : set.error()) all += (all.empty() ? "" : "\n") + fault;
  return all;
}
inline bool has(const std::string &text, std::string_view part) {
  INFO(text);
  INFO(part);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

inline Call call(std::string_view server, std::string_view tool,
                 std::string_view arguments = "{}") {
  Call out;
  out.exchange = 1;
  out.session = 7;
  out.transport = "http";
  out.peer = "127.0.0.1";
  out.principal = "anna";
  out.process_name = "claude";
  out.claimed_name = "Claude Code";
  out.method = "tools/call";
  out.server = server;
  out.name = tool;
  out.arguments = arguments;
  out.session_calls = 3;
  out.session_age_ns = 5'000'000'000;
  return out;
}

struct World {
  std::uint64_t steady = 1'000'000, unix_time = 1'780'000'000'000;
  RuleSet set;
  Judge judge{{[this] { return steady; }, [this] { return unix_time; }}};

  explicit World(const std::string &json) : set(good(json)) {}

  // Formats a verdict as "allow", "block RULE", "rewrite RULE TEXT" and so on. The prefix
  // "security.rules.mcp." and the rule "default" are omitted.
  static std::string shown(const Verdict &verdict) {
    constexpr std::string_view kinds[] = {"?", "allow", "ask", "block", "rewrite"};
    std::string out(kinds[verdict.kind < 5 ? verdict.kind : 0]);
    constexpr std::string_view own = "security.rules.mcp.";
    std::string_view rule = verdict.rule;
    if (rule.starts_with(own)) rule.remove_prefix(own.size());
    if (!rule.empty() && rule != "default") out.append(" ").append(rule);
    if (verdict.warned) out += " warned";
    if (!verdict.text.empty()) out.append(" ").append(verdict.text);
    return out;
  }
  std::string decide(const Call &question) { return shown(judge.decide(set, question)); }
  std::string decide(std::string_view server, std::string_view tool,
                     std::string_view arguments = "{}") {
    return decide(call(server, tool, arguments));
  }
  std::string observe(std::string_view server, std::string_view tool, std::string_view result,
                      std::string_view method = "tools/call") {
    Call of_result = call(server, tool);
    of_result.method = method;
    return shown(judge.observe(set, of_result, result));
  }
  bool shows(std::string_view server, std::string_view tool) {
    return judge.shows(set, call(server, tool, ""));
  }
};

}  // namespace bulkhead::rules::test
