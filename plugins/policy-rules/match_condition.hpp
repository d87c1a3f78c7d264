// Translates conditions of match/action rules to CEL.
//
// The language has && and || with parentheses, has(FIELD), == and != with a string,
// FIELD.contains/startsWith/endsWith/matches("TEXT") and FIELD.contains_pii(). It has no negation,
// and strings have no escapes. If the call lacks a field, every test of this field is false,
// including !=.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "roots.hpp"

namespace bulkhead::rules {

struct MatchCondition {
  std::string cel;
  Event event = Event::request;  // response if the condition uses a response field
};

// The error message begins with the column, counted from 1.
std::expected<MatchCondition, std::string> match_condition(std::string_view text);

}  // namespace bulkhead::rules
