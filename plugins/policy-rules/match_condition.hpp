// Translates conditions of match/action rules to CEL.
//
// Their language: && and || with brackets, has(FIELD), == and != with a string,
// FIELD.contains/startsWith/endsWith/matches("TEXT") and FIELD.contains_pii(); no negation, and
// strings without escapes. Every test of a field that the call lacks is false, including !=.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "roots.hpp"

namespace bulkhead::rules {

struct MatchCondition {
  std::string cel;
  Event event = Event::request;  // response: the condition uses a response field
};

// The error begins with its column (from 1).
std::expected<MatchCondition, std::string> match_condition(std::string_view text);

}  // namespace bulkhead::rules
