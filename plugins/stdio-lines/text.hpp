// Sanitizes untrusted text from other processes for logs and error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stdio_lines {

// Returns the text without terminal escape sequences. Unprintable characters (bh::is_unprintable())
// are replaced with spaces, and invalid UTF-8 with '?'. The result is truncated to max_bytes at a
// character boundary.
std::string cleaned(std::string_view text, std::size_t max_bytes);

// If a terminal escape sequence (ESC or U+009B) starts at i, returns the index after it. Otherwise,
// returns i. If the text ends inside the sequence, the index is beyond the end of the text. A title
// or link sequence ends at the end of its line at the latest.
std::size_t skip_escape(std::string_view text, std::size_t i) noexcept;

}  // namespace stdio_lines
