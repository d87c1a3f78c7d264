// What a server's texts about its tools try to do to the model that reads them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::mcp {

inline constexpr std::size_t kLongDescription = 1000;  // characters; more is worth a look

// Ids of what was found, each once, in a fixed order; empty: nothing. A pattern is looked for
// without regard to case and white space, and with hidden characters taken out:
//   "you-are-now", "ignore-previous", "ignore-instructions", "system-prefix", "role-system",
//   "override-instructions", "act-as-if", "pretend", "new-instructions", "forget", "system-tag",
//   "inst-open", "inst-close", "sys-tag"
// and of the text itself: "long" (over kLongDescription), "hidden-characters".
// A hint for people, no defence: there are other ways to say the same.
std::vector<std::string_view> audit_text(std::string_view text);

// The same for every string inside a tool's definition (validated JSON): names, descriptions, those
// in its schemas. "long" is about the tool's own description only.
std::vector<std::string_view> audit_tool(std::string_view tool_json);

// True for what a terminal or an editor does not show, or shows somewhere else: control characters,
// zero-width ones, marks of direction, tags, variation selectors.
bool hidden_character(char32_t c) noexcept;

// The code point at the start of `text`, *size its bytes; U+FFFD with size 1 for invalid UTF-8.
char32_t first_character(std::string_view text, std::size_t *size) noexcept;

}  // namespace bulkhead::mcp
