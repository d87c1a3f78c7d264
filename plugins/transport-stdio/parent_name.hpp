#pragma once

#include <string>
#include <string_view>

namespace transport_stdio {

inline constexpr std::size_t max_parent_name = 128;  // bytes

// Returns the sanitized name of the parent process, which is only for display, or an empty string
// if the name cannot be read.
std::string parent_name();

// Returns the full name of a process. The kernel truncates `comm` to 15 bytes. If `comm` is the
// start of the program name in `command_line`, which is NUL-separated, returns that program name.
std::string_view whole_name(std::string_view comm, std::string_view command_line) noexcept;

}  // namespace transport_stdio
