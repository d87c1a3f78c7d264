// Is a plugin's configuration what its descriptor's config_schema asks for?
//
// Thread: control.
#pragma once

#include <string_view>

#include "base/result.hpp"

namespace bulkhead {

// Checks against JSON Schema draft 4; an empty schema allows any object. The error says where and
// what is allowed, never the value that was given: it may be a credential. BH_E_INVALID: the
// configuration is wrong; BH_E_ABI: the schema itself is no schema.
Result<void> check_config(std::string_view schema_json, std::string_view config_json);

}  // namespace bulkhead
