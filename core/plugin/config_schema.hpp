// Is a plugin's configuration what its descriptor's config_schema asks for?
//
// Thread: control.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

// Checks against JSON Schema draft 4; an empty schema allows any object. But a schema
// whose properties do not name "profile_rules", and an empty one, refuse the rules of the profile:
// they would not be in force. The error says where and
// what is allowed, never the value that was given: it may be a credential. BH_E_INVALID: the
// configuration is wrong; BH_E_ABI: the schema itself is no schema.
Result<void> check_config(std::string_view schema_json, std::string_view config_json);

// One thing that is wrong: where, as a path ("guests[0].port"; empty: the object itself), and what
// is allowed there.
struct ConfigFault {
  std::string path, what;
};
// All that is wrong, at most 64; of an array the first fault only. Empty: nothing, or the schema is
// no schema, which check_config() says.
std::vector<ConfigFault> config_faults(std::string_view schema_json, std::string_view config_json);

}  // namespace bulkhead
