// One entry of mcpServers. Internal to core/profile.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "profile/sections.hpp"

namespace bulkhead::profiles {

// The key that a spelling stands for ("httpUrl" -> "url"); empty: no key of a server.
std::string_view server_key(std::string_view spelling);
// Our spelling of every key.
std::span<const std::string_view> server_keys();
// True for keys of other programs that mean nothing here and are left out with a note.
bool ignored_server_key(std::string_view name);
// "stdio", "http" or "sse" for the spellings people use; empty: none of them.
std::string_view canonical_type(std::string_view type);

std::string lowered(std::string_view text);  // ASCII only

// Headers that the gateway itself sets; any case.
bool reserved_header(std::string_view name);
// Why this is no URL for a server; empty: it is one. Does not repeat the URL.
std::string refused_url(std::string_view url, bool any_scheme);

// "http" or "stdio", for a list, of a definition that nothing else is read of.
std::string listed_type(const Node &server);

// Adds the server to the profile, or reports what is wrong with it.
void read_server(const Member &entry, Context &context);

}  // namespace bulkhead::profiles
