// What the readers of both spellings of a rule have in common.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "profile_rules.hpp"
#include "rule_set.hpp"

namespace bulkhead::rules {

// Reads one rule of a table; what is wrong with it is a fault of the table's place.
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
  // At last. Nothing: it is switched off, or wrong.
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
