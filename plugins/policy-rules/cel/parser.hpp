// Parses an expression into a syntax tree. The macros (has, all, exists, exists_one, map and
// filter) become nodes with their own operators.
#pragma once

#include <optional>
#include <string_view>

#include "ast.hpp"
#include "fault.hpp"

namespace bulkhead::cel {

// Returns the error, or std::nullopt on success.
std::optional<Fault> parse(std::string_view source, Ast *ast);

}  // namespace bulkhead::cel
