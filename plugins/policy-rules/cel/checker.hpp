// Resolves names and overloads, checks types, and folds constants.
#pragma once

#include <expected>
#include <string_view>

#include "ast.hpp"
#include "environment.hpp"
#include "evaluator.hpp"
#include "fault.hpp"

namespace bulkhead::cel {

// Returns the type of the whole expression. Adds literal regular expressions to *regexes.
std::expected<Type, Fault> check(std::string_view source, const Environment &environment, Ast *ast,
                                 Regexes *regexes);

}  // namespace bulkhead::cel
