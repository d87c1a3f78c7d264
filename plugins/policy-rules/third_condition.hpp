// Conditions of the third generation's rules, put into CEL.
//
// Their language: && and || with brackets, has(FIELD), == and != with a string,
// FIELD.contains/startsWith/endsWith/matches("TEXT") and FIELD.contains_pii(); no negation, and
// strings without escapes. A field that a call does not have makes what is said of it false, !=
// too.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "roots.hpp"

namespace bulkhead::rules {

struct ThirdCondition {
  std::string cel;
  Event event = Event::request;  // response: it speaks of one
};

// An error begins with its column (from 1).
std::expected<ThirdCondition, std::string> third_condition(std::string_view text);

}  // namespace bulkhead::rules
