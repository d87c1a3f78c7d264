// Lines of a text that a regular expression finds, with the lines around them.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

#include "tool-kit/pattern.hpp"

namespace builtin_http {

struct Matches {
  std::string blocks;  // "--- Match 1 ---", its lines with their numbers, ">>>" before the hit
  std::string json;    // of the same hits: {"line":1,"text":the line, up to 300 bytes of it},...
  std::size_t count = 0;
  bool more = false;  // there are matches beyond `most`
};

// The first `most` lines that pattern finds, each with up to `context` lines before and after.
// Ends early, with what it has, when cancelled becomes true, or when the blocks are longer than
// max_grep_bytes (then more is true). Thread: any.
inline constexpr std::size_t max_grep_bytes = 16u << 20;
Matches find_matches(std::string_view text, const tool_kit::Pattern &pattern, std::size_t context,
                     std::size_t most, const std::atomic<bool> &cancelled);

}  // namespace builtin_http
