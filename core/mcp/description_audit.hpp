// Checks the texts of a server's tools for attempts to manipulate the model that reads them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::mcp {

inline constexpr std::size_t kLongDescription = 1000;  // in characters; longer ones are reported

// Returns the ids of the findings, each once, in a fixed order. Patterns are matched without regard
// to case and white space, after hidden characters are removed:
//   "you-are-now", "ignore-previous", "ignore-instructions", "system-prefix", "role-system",
//   "override-instructions", "act-as-if", "pretend", "new-instructions", "forget", "system-tag",
//   "inst-open", "inst-close", "sys-tag"
// Findings about the text itself: "long" (over kLongDescription), "hidden-characters". The result
// is a hint for people and no protection: the same can be said in other words.
std::vector<std::string_view> audit_text(std::string_view text);

// The same for every string in a tool's definition (validated JSON): names, descriptions, strings
// in its schemas. "long" applies to the tool's own description only.
std::vector<std::string_view> audit_tool(std::string_view tool_json);

// True for characters that a terminal or editor does not show, or shows elsewhere: control
// characters, zero-width characters, direction marks, tags, variation selectors.
bool hidden_character(char32_t c) noexcept;

}  // namespace bulkhead::mcp
