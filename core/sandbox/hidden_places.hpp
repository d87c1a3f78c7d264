// The places that every sandbox of a server hides: one table, docs/hidden-places.md for people.
#pragma once

#include <span>
#include <string_view>

namespace bulkhead {

// Below a home folder: credentials, and programs' data that holds some.
std::span<const std::string_view> secrets_at_home() noexcept;

// Below a home folder: where several programs keep files, or where programs are started from. A
// server gets none of them as a whole because it was given one file there.
std::span<const std::string_view> shared_at_home() noexcept;

// Sockets whose other side does things for the user outside of any sandbox, and secrets that the
// machine gives to services.
std::span<const std::string_view> hidden_services() noexcept;

// Sockets of container engines, which their own clients may use.
std::span<const std::string_view> container_services() noexcept;

// The machine's own secrets, which only root can read.
std::span<const std::string_view> secrets_of_root() noexcept;

}  // namespace bulkhead
