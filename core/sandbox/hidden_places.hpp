// The paths that every server's sandbox hides. docs/hidden-places.md contains the same table.
#pragma once

#include <span>
#include <string_view>

namespace bulkhead {

// Relative to a home folder: credentials, and program data that contains credentials.
std::span<const std::string_view> secrets_at_home() noexcept;

// Relative to a home folder: folders that several programs share or from which programs are
// started. If a server is granted access to a file in such a folder, the folder itself is not
// granted.
std::span<const std::string_view> shared_at_home() noexcept;

// Sockets of services that act on behalf of the user outside the sandbox, and the machine's service
// credentials.
std::span<const std::string_view> hidden_services() noexcept;

// Container engine sockets. Servers that are clients of a container engine may use them.
std::span<const std::string_view> container_services() noexcept;

// The machine's secrets that only root can read.
std::span<const std::string_view> secrets_of_root() noexcept;

}  // namespace bulkhead
