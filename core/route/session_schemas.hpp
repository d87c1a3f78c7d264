// Removes output schemas that clients of the revisions with sessions do not accept. MCP 2026-07-28
// permits any JSON Schema as a tool's outputSchema; before, its root had to have the type "object".
// A client that validates lists may reject the whole list because of one such schema.
//
// Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

// Returns the items without each outputSchema whose root does not have the type "object". `tools`
// contains valid JSON objects, separated by commas. If a schema is removed, *room stores the text;
// otherwise, the result is `tools`. Names with escape sequences are not recognized. Takes time in
// proportion to the size of `tools`.
std::string_view with_session_schemas(std::string_view tools, std::string *room);

}  // namespace bulkhead
