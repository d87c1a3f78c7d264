// Holds all rules of a profile in the order in which they are evaluated. Immutable: a policy reload
// creates a new RuleSet.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profile_rules.hpp"
#include "rule.hpp"

namespace bulkhead::rules {

// Finds the rules that may match a given tool of a given server. The index is built from the
// constants with which conditions compare server and tool names.
class Index {
 public:
  void add(std::uint32_t number, const Rule &rule);  // numbers must increase with each call

  // Calls visit(number) for each candidate rule in ascending order until visit returns true.
  template <class Visit>
  void each(std::string_view server, std::string_view tool, Visit visit) const {
    const List *lists[4] = {};
    std::size_t count = 0;
    const auto take = [&](const Tools &tools) {
      if (!tools.any.empty()) lists[count++] = &tools.any;
      if (tools.by_name.empty()) return;
      if (const auto at = tools.by_name.find(tool); at != tools.by_name.end()) {
        lists[count++] = &at->second;
      }
    };
    take(any_);
    if (const auto at = servers_.find(server); at != servers_.end()) take(at->second);
    std::size_t next[4] = {};
    for (;;) {
      std::size_t first = count;
      for (std::size_t i = 0; i < count; ++i) {
        if (next[i] == lists[i]->size()) continue;
        if (first == count || (*lists[i])[next[i]] < (*lists[first])[next[first]]) first = i;
      }
      if (first == count || visit((*lists[first])[next[first]++])) return;
    }
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const noexcept {
      return std::hash<std::string_view>{}(s);
    }
  };
  using List = std::vector<std::uint32_t>;
  template <class T>
  using Map = std::unordered_map<std::string, T, Hash, std::equal_to<>>;
  struct Tools {
    List any;
    Map<List> by_name;
  };
  static void put(Tools &tools, const std::vector<std::string_view> *names, std::uint32_t number);

  Tools any_;
  Map<Tools> servers_;
};

struct RuleSet {
  static constexpr std::size_t kMaxRules = 10'000;

  std::array<std::vector<Rule>, kEvents> rules;  // in order of evaluation
  std::array<Index, kEvents> indexes;
  bool legacy = false;
  std::vector<std::string> warnings;      // for the author of the rules; the rules are valid
  std::uint32_t needs = 0;                // BH_POLICY_... flags
  std::uint64_t values_at_once = 65'536;  // limit for messages that the reactor thread evaluates
  bool refuses_large = false;             // reject larger messages if a rule reads them

  // A message up to this size cannot contain more than values_at_once values, because each value
  // takes at least two bytes, including its comma.
  std::size_t bytes_at_once() const { return 2 * values_at_once; }

  std::vector<Rule> &of(Event event) { return rules[static_cast<std::size_t>(event)]; }
  const std::vector<Rule> &of(Event event) const { return rules[static_cast<std::size_t>(event)]; }
  const Index &index_of(Event event) const { return indexes[static_cast<std::size_t>(event)]; }

  // Loads the rules from the plugin's configuration, which must be a JSON object. Each error
  // message is one line.
  static std::expected<RuleSet, std::vector<std::string>> load(std::string_view config_json);
};

// A rule read from the profile.
struct RuleDraft {
  Rule rule;
  bool corp = false;  // set by the corporation's layer, so higher layers cannot replace the rule
};
struct Drafts {
  std::map<std::string, RuleDraft> rules;  // by ID
  Action fallback = Action::allow;         // the action if no rule decides
  std::string fallback_place;
  bool fallback_fixed = false;  // set by the corporation's layer
  bool legacy = false;
  std::uint64_t values_at_once = 65'536;
  bool refuses_large = false, refuses_large_fixed = false;  // fixed by the corporation's layer
};

// Adds a rule. It replaces any rule with the same ID from a lower layer. If that rule is from the
// corporation's layer, an error is reported instead.
void add_rule(const Table &table, Rule rule, Drafts *out);
// Adds the rule that was read from `table`. If the rule is disabled or invalid (nullopt), removes
// the rule with the same ID from a lower layer, unless the corporation set that rule.
void put_rule(const Table &table, std::optional<Rule> rule, Drafts *out);

// read_security() reads the [security] section. read_match_rules() reads the rules in [corp.rules],
// [profiles.rules] and [default].
void read_security(const Table &section, Drafts *out);
void read_match_rules(const Layer &layer, Drafts *out, Faults *faults);

// Compiles a condition into the rule. If the condition is invalid, reports an error at `key` and
// returns false.
bool compile_condition(const Table &table, std::string_view key, std::string_view text, Rule *rule);

}  // namespace bulkhead::rules
