// The user layer: a JSON layer to which a program adds servers.
//
// Thread-safe. Does not access files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "profile/layer.hpp"
#include "profile/server_entry.hpp"

namespace bulkhead {

// Returns the layer's text with one server added. load_profile() validates the server together with
// all layers. Returns BH_E_INVALID if the entry is damaged, BH_E_DENIED if the name exists, or
// another error if the layer cannot be read.
Result<std::string> with_server(const ProfileLayer &layer, const ServerEntry &entry);

// Returns the layer's text without the server, or BH_E_NOT_FOUND if there is no server with this
// name.
Result<std::string> without_server(const ProfileLayer &layer, std::string_view name);

// Returns a definition as one JSON object for display. Values of env and headers, and values in url
// and args that look like credentials, are "***".
std::string masked_json(const ServerDef &def);

}  // namespace bulkhead
