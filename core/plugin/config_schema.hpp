// Validates a plugin's configuration against the config_schema in the plugin's descriptor. Used on
// the control thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

// Validates a configuration against a JSON Schema (draft 4). If the schema is empty, any object is
// valid. A configuration that contains rules from the profile is rejected if the schema does not
// define the property "profile_rules", because the plugin would ignore the rules. The error message
// contains the path and the allowed values, but not the invalid value, which may be a credential.
// Returns BH_E_INVALID if the configuration is invalid, BH_E_LIMIT if it is too large, is nested
// too deeply or contains a number that is too long, and BH_E_ABI if the schema is not a JSON
// object or exceeds the same limits.
Result<void> check_config(std::string_view schema_json, std::string_view config_json);

// An error: its path ("guests[0].port"; empty for the whole object), and a description such as the
// allowed values.
struct ConfigFault {
  std::string path, what;
};
// Returns the errors. Stops after about 64 of them, and does not check an array further after its
// first invalid value. Returns an empty vector if there are no errors, or if the schema is empty or
// invalid; check_config() reports an invalid schema.
std::vector<ConfigFault> config_faults(std::string_view schema_json, std::string_view config_json);

}  // namespace bulkhead
