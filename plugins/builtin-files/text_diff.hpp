// Unified diffs for text replacements.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace builtin_files {

// Replaces `from` with `to` at each position in `places` (ascending, not overlapping).
std::string replaced(std::string_view text, const std::vector<std::size_t> &places,
                     std::string_view from, std::string_view to);

// Returns the unified diff of text and replaced(...), with three lines of context. The diff is
// truncated at max_bytes, and its last line then reports the truncation. The run time is
// proportional to the sum of the text size and the number of places, not to their product.
std::string replacement_diff(std::string_view path, std::string_view text,
                             const std::vector<std::size_t> &places, std::string_view from,
                             std::string_view to, std::size_t max_bytes);

}  // namespace builtin_files
