// Reads a budget: over = { calls = 60, per = "1m", by = ["session", "tool"] }
#pragma once

#include <optional>

#include "profile_rules.hpp"
#include "rule.hpp"

namespace bulkhead::rules {

// nullopt: invalid, and the faults of the table have the errors.
std::optional<Budget> read_budget(const Table &table);

}  // namespace bulkhead::rules
