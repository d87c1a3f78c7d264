// Defines the base class of the rule readers for both rule syntaxes.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "profile_rules.hpp"
#include "rule_set.hpp"

namespace bulkhead::rules {

// Reads one rule from a table. Reports errors through the table.
class RuleReader {
 protected:
  explicit RuleReader(const Table &table) : table_(table) {
    rule_.id = table.path();
    rule_.place = table.place();
    rule_.layer = table.layer().name;
  }
  ~RuleReader() = default;
  RuleReader(const RuleReader &) = delete;
  RuleReader &operator=(const RuleReader &) = delete;

  void fault(std::string_view key, std::string_view what) {
    failed_ = true;
    table_.fault(key, what);
  }
  // Reads the remaining keys. Must be called last. Returns nullopt if the rule is disabled or
  // invalid.
  std::optional<Rule> finish() {
    rule_.reason = table_.text("reason").value_or("");
    const bool enabled = table_.flag("enabled").value_or(true);
    if (failed_ || !enabled) return std::nullopt;
    return std::move(rule_);
  }

  const Table &table_;
  Rule rule_;
  bool failed_ = false;
};

}  // namespace bulkhead::rules
