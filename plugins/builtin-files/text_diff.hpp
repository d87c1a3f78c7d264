// Unified diffs of replacements.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace builtin_files {

// Replaces `from` by `to` at each of the places (ascending, not overlapping).
std::string replaced(std::string_view text, const std::vector<std::size_t> &places,
                     std::string_view from, std::string_view to);

// The unified diff of text and replaced(...), with three lines of context; truncated after
// max_bytes, with a last line that reports it. The time grows with the text, not with the number of
// places times the text.
std::string replacement_diff(std::string_view path, std::string_view text,
                             const std::vector<std::size_t> &places, std::string_view from,
                             std::string_view to, std::size_t max_bytes);

}  // namespace builtin_files
