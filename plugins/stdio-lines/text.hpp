// Bytes of a process that we do not control, made fit for logs and error texts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stdio_lines {

// Without terminal escape sequences; control characters become spaces, what is not UTF-8 becomes
// '?'. At most max_bytes, cut on a character boundary.
std::string cleaned(std::string_view text, std::size_t max_bytes);

// Index behind the terminal escape sequence that begins at i (with ESC, or with U+009B); beyond the
// text's size if it ends within it. i: no sequence begins there. A sequence with a text of its own
// (titles, links) ends with its line at the latest.
std::size_t skip_escape(std::string_view text, std::size_t i) noexcept;

// Length of the well-formed UTF-8 character at text[i], or 0.
std::size_t utf8_length(std::string_view text, std::size_t i) noexcept;

// strerror without its shared buffer.
std::string error_name(int error);

}  // namespace stdio_lines
