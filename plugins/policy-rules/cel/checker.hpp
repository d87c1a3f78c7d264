// Checks a parsed expression: resolves names and overloads, checks types, and folds constants.
#pragma once

#include <expected>
#include <string_view>

#include "ast.hpp"
#include "environment.hpp"
#include "evaluator.hpp"
#include "fault.hpp"

namespace bulkhead::cel {

// Checks the tree of `source` and returns the type of the expression. Compiles literal regular
// expressions and adds them to *regexes.
std::expected<Type, Fault> check(std::string_view source, const Environment &environment, Ast *ast,
                                 Regexes *regexes);

}  // namespace bulkhead::cel
