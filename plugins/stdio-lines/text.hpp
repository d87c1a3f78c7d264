// Sanitizes untrusted bytes of other processes for logs and error texts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stdio_lines {

// Removes terminal escape sequences; control characters become spaces, invalid UTF-8 becomes '?'.
// The result has at most max_bytes, cut between characters.
std::string cleaned(std::string_view text, std::size_t max_bytes);

// Returns the index after the terminal escape sequence that begins at i (with ESC or U+009B). The
// index is beyond the text's size if the sequence is incomplete, and it is i if no sequence begins
// there. A sequence with text (titles, links) ends no later than the end of its line.
std::size_t skip_escape(std::string_view text, std::size_t i) noexcept;

}  // namespace stdio_lines
