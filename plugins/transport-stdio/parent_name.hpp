// Who has started us, for display.
#pragma once

#include <string>
#include <string_view>

namespace transport_stdio {

inline constexpr std::size_t max_parent_name = 128;  // bytes

// The parent process's name, cleaned; empty if it cannot be read.
std::string parent_name();

// The kernel keeps 15 bytes of a name. comm: what it keeps; command_line: what the process was
// started with, NULs between. A cut name is completed from it where the two agree.
std::string_view whole_name(std::string_view comm, std::string_view command_line) noexcept;

}  // namespace transport_stdio
