// Replaces text and creates unified diffs of the replacement.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace builtin_files {

// Replaces `from` with `to` at each offset in `places`, which must be ascending and not overlap.
std::string replaced(std::string_view text, const std::vector<std::size_t> &places,
                     std::string_view from, std::string_view to);

// Returns the unified diff between `text` and replaced(...), with three context lines. A diff that
// exceeds max_bytes is truncated, and its last line says so. The run time is linear in the text
// size, plus the number of places times the length of the lines that contain them.
std::string replacement_diff(std::string_view path, std::string_view text,
                             const std::vector<std::size_t> &places, std::string_view from,
                             std::string_view to, std::size_t max_bytes);

}  // namespace builtin_files
