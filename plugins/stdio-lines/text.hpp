// Bytes of a process that we do not control, made fit for logs and error texts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stdio_lines {

// Without terminal escape sequences; control characters become spaces, what is not UTF-8 becomes
// '?'. At most max_bytes, cut on a character boundary.
std::string cleaned(std::string_view text, std::size_t max_bytes);

// Length of the well-formed UTF-8 character at text[i], or 0.
std::size_t utf8_length(std::string_view text, std::size_t i) noexcept;

// strerror without its shared buffer.
std::string error_name(int error);

}  // namespace stdio_lines
