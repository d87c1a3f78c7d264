// The user layer: a JSON layer that a program writes, one server at a time.
//
// Thread: any; nothing here touches a file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "profile/load.hpp"

namespace bulkhead {

// The layer's text with one more server. `definition`: one JSON object, "id" (its name, kept in
// *name) and the members of a server of mcpServers; "allowed_tools" is another spelling of
// allowTools in which an empty list hides nothing. Whether it is a good server is for
// load_profile(), with all layers. BH_E_INVALID: no such object; BH_E_DENIED: the layer has a
// server of that name; other errors: the layer cannot be read.
Result<std::string> with_server(const ProfileLayer &layer, std::string_view definition,
                                std::string *name);

// The layer's text without that server. BH_E_NOT_FOUND: it has none of that name.
Result<std::string> without_server(const ProfileLayer &layer, std::string_view name);

// A definition for people, as one JSON object: values of env and headers, and what looks like a
// credential in url and args, are "***".
std::string masked_json(const ServerDef &def);

}  // namespace bulkhead
