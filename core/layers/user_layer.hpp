// The user layer: a JSON layer that a program writes, one server at a time.
//
// Thread: any; nothing here touches a file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "profile/layer.hpp"
#include "profile/server_entry.hpp"

namespace bulkhead {

// The layer's text with one more server. Whether it is a good one is for load_profile(), with all
// layers. BH_E_INVALID: the entry is damaged; BH_E_DENIED: the layer has a server of that name;
// other errors: the layer cannot be read.
Result<std::string> with_server(const ProfileLayer &layer, const ServerEntry &entry);

// The layer's text without that server. BH_E_NOT_FOUND: it has none of that name.
Result<std::string> without_server(const ProfileLayer &layer, std::string_view name);

// A definition for people, as one JSON object: values of env and headers, and what looks like a
// credential in url and args, are "***".
std::string masked_json(const ServerDef &def);

}  // namespace bulkhead
