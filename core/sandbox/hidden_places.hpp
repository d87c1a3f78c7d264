// Lists the paths that a server's sandbox hides, and the paths in /run that it shows.
// docs/hidden-places.md contains the same tables.
#pragma once

#include <span>
#include <string_view>

namespace bulkhead {

// Credentials and program data that contains credentials. The paths are relative to a home
// directory.
std::span<const std::string_view> secrets_at_home() noexcept;

// Folders that several programs share, or from which programs are started. The paths are relative
// to a home directory. A server that is granted access to a file in such a folder is not granted
// access to the folder itself.
std::span<const std::string_view> shared_at_home() noexcept;

// Sockets of services that act on the user's behalf outside the sandbox, and the machine's service
// credentials.
std::span<const std::string_view> hidden_services() noexcept;

// Container engine sockets. They are not hidden from servers that are clients of a container
// engine.
std::span<const std::string_view> container_services() noexcept;

// Sockets of the daemons of package managers, which download and build outside the sandbox. In the
// mode `home-read-only`, they are not hidden from servers that a package manager starts.
std::span<const std::string_view> package_services() noexcept;

// Folders in which container engines of the user keep their sockets and virtual machines. The paths
// are relative to a home directory. They are not hidden from clients of a container engine.
std::span<const std::string_view> containers_at_home() noexcept;

// Paths in /run that are shown to every server if they exist. /run is otherwise hidden, except for
// symbolic links and for paths that only some servers need (name_services_in_run(),
// container_services(), paths named in definitions).
std::span<const std::string_view> visible_in_run() noexcept;

// Sockets in /run that look up names of hosts and users. They are shown to servers with network
// access, because they send queries over the network.
std::span<const std::string_view> name_services_in_run() noexcept;

// System secrets that only root can read.
std::span<const std::string_view> secrets_of_root() noexcept;

}  // namespace bulkhead
