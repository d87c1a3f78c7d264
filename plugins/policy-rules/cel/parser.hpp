// From text to a tree; macros (has, all, exists, exists_one, map, filter) become nodes of their
// own.
#pragma once

#include <optional>
#include <string_view>

#include "ast.hpp"
#include "fault.hpp"

namespace bulkhead::cel {

// Fills *ast. std::nullopt: parsed.
std::optional<Fault> parse(std::string_view source, Ast *ast);

}  // namespace bulkhead::cel
