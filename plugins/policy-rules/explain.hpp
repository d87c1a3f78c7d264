// Explains how the rules evaluate a call.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "judge.hpp"

namespace bulkhead::rules {

// Evaluates a call described in JSON and returns the explanation in JSON (bh.explain/1). Returns an
// error message if the description is invalid.
std::expected<std::string, std::string> explain(const RuleSet &set, Judge &judge,
                                                std::string_view call_json);

}  // namespace bulkhead::rules
