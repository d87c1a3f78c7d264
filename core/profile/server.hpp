// Reads one mcpServers entry. Internal to the profile libraries.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "profile/sections.hpp"

namespace bulkhead::profiles {

// Returns the canonical name of a key or its alias ("httpUrl" -> "url"). Returns an empty view if
// servers have no such key.
std::string_view server_key(std::string_view spelling);
// Returns the canonical names of all server keys except envFile, which is always rejected.
std::span<const std::string_view> server_keys();
// Returns true if the server can have the key `key` (a canonical name). For example, only a server
// with a command can have sandbox_paths.
bool server_key_fits(std::string_view key, const Node &server);
// Returns true for keys of other programs that have no effect here. They are ignored with a note.
bool ignored_server_key(std::string_view name);
// Returns "stdio", "http" or "sse" for this type or one of its aliases. Returns an empty view for
// other types.
std::string_view canonical_type(std::string_view type);

// Returns true for headers that cannot be configured: those that the gateway sets, and headers of
// the connection, such as TE and Upgrade. Ignores case.
bool reserved_header(std::string_view name);
// Returns the reason why a server URL is invalid, or an empty string if it is valid. The reason
// never contains the URL.
std::string refused_url(std::string_view url, bool any_scheme);

// Returns "http" or "stdio". Used to list a server whose definition has not been read completely.
std::string listed_type(const Node &server);

// Reads the server and adds it to the profile, or reports its errors.
void read_server(const Member &entry, Context &context);

}  // namespace bulkhead::profiles
