// Searches tool definitions for text that tries to manipulate the model that reads it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::mcp {

// in characters; longer descriptions are reported
inline constexpr std::size_t kLongDescription = 1000;

// Returns the IDs of the findings in a fixed order, without duplicates.
//
// The following IDs mean that the text contains a suspicious phrase. Hidden characters are removed
// before the search, and case and the amount of white space are ignored: "you-are-now",
// "ignore-previous", "ignore-instructions", "system-prefix", "role-system",
// "override-instructions", "act-as-if", "pretend", "new-instructions", "forget", "system-tag",
// "inst-open", "inst-close", "sys-tag".
//
// Two other IDs concern the text as a whole: "long" (more than kLongDescription characters) and
// "hidden-characters". The result is only a hint for users: malicious text that uses other phrases
// is not detected.
std::vector<std::string_view> audit_text(std::string_view text);

// Applies the checks of audit_text() to every string in a tool's definition (validated JSON):
// names, descriptions, and strings in its schemas. "long" is reported only for the tool's own
// description.
std::vector<std::string_view> audit_tool(std::string_view tool_json);

// Returns true for characters that terminals or editors hide or reorder: control characters,
// zero-width characters, bidirectional formatting, tag characters, variation selectors.
bool hidden_character(char32_t c) noexcept;

}  // namespace bulkhead::mcp
