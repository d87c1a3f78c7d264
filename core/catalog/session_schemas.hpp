// Removes output schemas that clients of the revisions with sessions do not accept. MCP 2026-07-28
// permits any JSON Schema as a tool's outputSchema; before, its root had to have the type "object".
// A client that validates lists may reject the whole list because of one such schema.
//
// Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bulkhead {

// Returns the tool (a validated JSON object) without each outputSchema whose root does not have the
// type "object", and without the space between its members. Returns nullopt if there is nothing to
// remove. Takes time in proportion to the size of the tool.
std::optional<std::string> without_foreign_schemas(std::string_view tool);

}  // namespace bulkhead
