// Parses an expression into a tree. Macros (has, all, exists, exists_one, map, filter) have their
// own nodes.
#pragma once

#include <optional>
#include <string_view>

#include "ast.hpp"
#include "fault.hpp"

namespace bulkhead::cel {

// Returns the error, or std::nullopt on success.
std::optional<Fault> parse(std::string_view source, Ast *ast);

}  // namespace bulkhead::cel
