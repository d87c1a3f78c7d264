// Reads a rule's budget, such as over = { calls = 60, per = "1m", by = ["session", "tool"] }.
#pragma once

#include <optional>

#include "profile_rules.hpp"
#include "rule.hpp"

namespace bulkhead::rules {

// Returns nullopt if the budget is invalid, after reporting the errors through `table`.
std::optional<Budget> read_budget(const Table &table);

}  // namespace bulkhead::rules
