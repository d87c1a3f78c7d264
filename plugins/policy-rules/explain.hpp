// What the rules make of one call that a person describes, as JSON (see bh.explain/1).
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "judge.hpp"

namespace bulkhead::rules {

// An error is for people: what of the description is wrong.
std::expected<std::string, std::string> explain(const RuleSet &set, Judge &judge,
                                                std::string_view call_json);

}  // namespace bulkhead::rules
