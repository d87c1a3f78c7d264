// The user layer: a JSON layer that a program writes, one server at a time.
//
// Thread: any. No file is accessed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "profile/layer.hpp"
#include "profile/server_entry.hpp"

namespace bulkhead {

// The layer's text with one more server. load_profile() validates the server, with all layers.
// BH_E_INVALID: the entry is damaged; BH_E_DENIED: the name exists; other errors: the layer cannot
// be read.
Result<std::string> with_server(const ProfileLayer &layer, const ServerEntry &entry);

// The layer's text without that server. BH_E_NOT_FOUND: no server of this name.
Result<std::string> without_server(const ProfileLayer &layer, std::string_view name);

// A definition for display, as one JSON object: values of env and headers, and values of url and
// args that look like credentials, are "***".
std::string masked_json(const ServerDef &def);

}  // namespace bulkhead
