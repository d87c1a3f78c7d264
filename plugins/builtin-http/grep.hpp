// Searches text line by line for a regular expression, and formats the matching lines with their
// context lines.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

#include "tool-kit/pattern.hpp"

namespace builtin_http {

struct Matches {
  std::string blocks;  // "--- Match 1 ---" and numbered lines, with ">>>" before the match
  std::string json;    // the matches as {"line":1,"text":"..."},...; at most 300 bytes per text
  std::size_t count = 0;
  bool more = false;  // there are matches that were not returned
};

inline constexpr std::size_t max_grep_bytes = 16u << 20;

// Finds the first `most` matching lines. Each match is returned with up to `context` lines before
// and after it. Stops early if `cancelled` becomes true. Also stops if `blocks` exceeds
// max_grep_bytes; `more` is then true if another line matches. Thread-safe.
Matches find_matches(std::string_view text, const tool_kit::Pattern &pattern, std::size_t context,
                     std::size_t most, const std::atomic<bool> &cancelled);

}  // namespace builtin_http
