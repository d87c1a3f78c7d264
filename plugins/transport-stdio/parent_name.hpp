#pragma once

#include <string>
#include <string_view>

namespace transport_stdio {

inline constexpr std::size_t max_parent_name = 128;  // bytes

// Returns the sanitized name of the parent process for display, or an empty string if it cannot be
// read.
std::string parent_name();

// Completes a process name (comm), which the kernel truncates to 15 bytes, from the NUL-separated
// command line, if both match.
std::string_view whole_name(std::string_view comm, std::string_view command_line) noexcept;

}  // namespace transport_stdio
