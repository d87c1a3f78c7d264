// Sanitizes untrusted bytes from other processes for logs and error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stdio_lines {

// Removes terminal escape sequences. Replaces control characters with spaces, and invalid UTF-8
// with '?'. The result is truncated to max_bytes at a character boundary.
std::string cleaned(std::string_view text, std::size_t max_bytes);

// Returns the index after the terminal escape sequence at i (ESC or U+009B), or i if there is no
// sequence. If the sequence is incomplete, the index is beyond the end of the text. A sequence with
// text (titles, links) extends no further than the end of its line.
std::size_t skip_escape(std::string_view text, std::size_t i) noexcept;

}  // namespace stdio_lines
