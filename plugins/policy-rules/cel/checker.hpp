// Resolves names and overloads, checks types, computes what is constant.
#pragma once

#include <expected>
#include <string_view>

#include "ast.hpp"
#include "environment.hpp"
#include "evaluator.hpp"
#include "fault.hpp"

namespace bulkhead::cel {

// The type of the whole expression. Literal regular expressions go to *regexes.
std::expected<Type, Fault> check(std::string_view source, const Environment &environment, Ast *ast,
                                 Regexes *regexes);

}  // namespace bulkhead::cel
