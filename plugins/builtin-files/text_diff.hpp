// The difference that replacing makes, as a unified diff.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace builtin_files {

// text with `from` replaced by `to` at each of the places (ascending, not overlapping).
std::string replaced(std::string_view text, const std::vector<std::size_t> &places,
                     std::string_view from, std::string_view to);

// Unified diff of text and replaced(...), with three lines of context; cut after max_bytes, which a
// last line says. Takes a time that grows with text, not with the number of places times text.
std::string replacement_diff(std::string_view path, std::string_view text,
                             const std::vector<std::size_t> &places, std::string_view from,
                             std::string_view to, std::size_t max_bytes);

}  // namespace builtin_files
