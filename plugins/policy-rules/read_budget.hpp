// over = { calls = 60, per = "1m", by = ["session", "tool"] }
#pragma once

#include <optional>

#include "profile_rules.hpp"
#include "rule.hpp"

namespace bulkhead::rules {

// Nothing: it is wrong, and the table's faults say how.
std::optional<Budget> read_budget(const Table &table);

}  // namespace bulkhead::rules
