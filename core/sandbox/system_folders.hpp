// Classifies system folders that need special treatment in a server's view. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

// Returns true if the top-level folder with this name is visible in `strict` mode.
bool is_system_top(std::string_view name) noexcept;

// Returns true if the path is in a folder such as /usr or /etc. Its contents do not become writable
// if a definition names them, except in sandbox_paths.
bool in_closed_root(const std::string &path) noexcept;

// Returns true if the path is not granted as a whole, except by sandbox_paths: it is in a closed
// root, or it is a folder such as "/", "/home" or "/var".
bool is_closed(const std::string &path) noexcept;

}  // namespace bulkhead
