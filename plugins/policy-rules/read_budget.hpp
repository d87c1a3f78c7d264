// Reads a budget: over = { calls = 60, per = "1m", by = ["session", "tool"] }
#pragma once

#include <optional>

#include "profile_rules.hpp"
#include "rule.hpp"

namespace bulkhead::rules {

// Returns nullopt if the table is invalid; the errors are added to its faults.
std::optional<Budget> read_budget(const Table &table);

}  // namespace bulkhead::rules
