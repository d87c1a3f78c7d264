// Reads a single mcpServers entry. Internal to the profile libraries.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "profile/sections.hpp"

namespace bulkhead::profiles {

// Returns a key's canonical name ("httpUrl" -> "url"), or an empty view if servers have no such
// key.
std::string_view server_key(std::string_view spelling);
// Returns the canonical names of all keys.
std::span<const std::string_view> server_keys();
// Returns true for keys of other programs that have no meaning here and are ignored with a note.
bool ignored_server_key(std::string_view name);
// Returns "stdio", "http" or "sse" for the type or one of its aliases, or an empty view for other
// types.
std::string_view canonical_type(std::string_view type);

// Returns true for headers that the gateway sets itself. Ignores case.
bool reserved_header(std::string_view name);
// Returns the reason why a server URL is invalid, or an empty string. The reason does not contain
// the URL.
std::string refused_url(std::string_view url, bool any_scheme);

// Returns "http" or "stdio", used to list a server whose definition is not completely read.
std::string listed_type(const Node &server);

// Adds the server to the profile, or reports its errors.
void read_server(const Member &entry, Context &context);

}  // namespace bulkhead::profiles
