// Checks a plugin's configuration against its descriptor's config_schema.
//
// Thread: control.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

// Checks against JSON Schema draft 4; an empty schema allows any object. But if the schema is empty
// or its properties do not name "profile_rules", a configuration with rules of the profile is
// refused, since the plugin would ignore them. The error contains the path and the allowed values,
// never the given value, which may be a credential. BH_E_INVALID: the configuration is invalid;
// BH_E_ABI: the schema itself is invalid.
Result<void> check_config(std::string_view schema_json, std::string_view config_json);

// One error: its path ("guests[0].port"; empty: the object itself), and the allowed values.
struct ConfigFault {
  std::string path, what;
};
// Returns all errors, at most 64, and only the first of each array. Empty: no error, or an invalid
// schema, which check_config() reports.
std::vector<ConfigFault> config_faults(std::string_view schema_json, std::string_view config_json);

}  // namespace bulkhead
