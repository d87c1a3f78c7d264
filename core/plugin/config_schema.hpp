// Validates a plugin's configuration against the config_schema of its descriptor.
//
// Runs on the control thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

// Validates with JSON Schema draft 4. An empty schema allows any object. A configuration with rules
// from the profile is rejected unless the schema's properties name "profile_rules", because the
// plugin would ignore the rules. The error contains the path and the allowed values, but never the
// invalid value, which may be a credential. Returns BH_E_INVALID if the configuration is invalid
// and BH_E_ABI if the schema itself is invalid.
Result<void> check_config(std::string_view schema_json, std::string_view config_json);

// One error: the allowed values and the path ("guests[0].port"; empty for the object itself).
struct ConfigFault {
  std::string path, what;
};
// Returns at most 64 errors, with no more than the first error in each array. Returns an empty
// vector if there are none or if the schema is invalid; check_config() reports an invalid schema.
std::vector<ConfigFault> config_faults(std::string_view schema_json, std::string_view config_json);

}  // namespace bulkhead
