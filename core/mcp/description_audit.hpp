// Checks the texts of a server's tools for attempts to manipulate the model that reads them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::mcp {

inline constexpr std::size_t kLongDescription = 1000;  // in characters; a longer description is a
                                                       // finding

// Returns the ids of the findings, each once, in a fixed order. Patterns are matched after hidden
// characters are removed, ignoring case and white space:
//  "you-are-now", "ignore-previous", "ignore-instructions", "system-prefix", "role-system",
//  "override-instructions", "act-as-if", "pretend", "new-instructions", "forget", "system-tag",
//  "inst-open", "inst-close", "sys-tag"
// Findings about the text itself: "long" (over kLongDescription), "hidden-characters". The result
// is only a hint for users: other wordings are not detected.
std::vector<std::string_view> audit_text(std::string_view text);

// Checks every string in a tool's definition (validated JSON) in the same way: names, descriptions,
// and strings in its schemas. "long" applies only to the tool's own description.
std::vector<std::string_view> audit_tool(std::string_view tool_json);

// Returns true for characters that terminals or editors hide or display in a different position:
// control characters, zero-width characters, direction marks, tags, variation selectors.
bool hidden_character(char32_t c) noexcept;

}  // namespace bulkhead::mcp
