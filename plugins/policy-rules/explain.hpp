// Explains the evaluation of a described call, as JSON (see bh.explain/1).
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "judge.hpp"

namespace bulkhead::rules {

// Returns an error if the description is invalid.
std::expected<std::string, std::string> explain(const RuleSet &set, Judge &judge,
                                                std::string_view call_json);

}  // namespace bulkhead::rules
