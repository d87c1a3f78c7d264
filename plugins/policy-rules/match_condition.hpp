// Translates the conditions of match/action rules to CEL.
//
// Conditions support &&, || and parentheses, has(FIELD), == and != with a string,
// FIELD.contains/startsWith/endsWith/matches("TEXT"), and FIELD.contains_pii(). There is no
// negation, and strings have no escape sequences. If the call does not have a field, all tests of
// that field are false, even !=.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "roots.hpp"

namespace bulkhead::rules {

struct MatchCondition {
  std::string cel;
  Event event = Event::request;  // response if the condition reads a response field
};

// Translates a condition. The error message starts with the column, counted from 1.
std::expected<MatchCondition, std::string> match_condition(std::string_view text);

}  // namespace bulkhead::rules
