// The user layer: a JSON profile layer to which a program adds servers. These functions do not
// access files. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "profile/layer.hpp"
#include "profile/server_entry.hpp"

namespace bulkhead {

// Adds a server and returns the layer's new text. Does not validate the server: load_profile() does
// this for all layers together. Returns BH_E_INVALID if the entry is malformed or the layer
// cannot be parsed, and BH_E_DENIED if the name exists.
Result<std::string> with_server(const ProfileLayer &layer, const ServerEntry &entry);

// Removes a server and returns the layer's new text. Returns BH_E_NOT_FOUND if there is no server
// with this name, and BH_E_INVALID if the layer cannot be parsed.
Result<std::string> without_server(const ProfileLayer &layer, std::string_view name);

// Returns a definition as a JSON object for display. Credentials are replaced with "***": all
// values of env and headers, and values in url and args that look like credentials.
std::string masked_json(const ServerDef &def);

}  // namespace bulkhead
