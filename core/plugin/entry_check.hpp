// Validates the value returned by a plugin's entry function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"

namespace bulkhead {

// The host's copy of a descriptor. Members that an older plugin does not have are empty.
struct PluginDescription {
  std::string id, name, version, vendor, config_schema;
  std::vector<std::string> provides;
};

// Rejects a plugin that has a different ABI major version or requires a newer minor version than
// `host_minor`. The error contains both versions and the remedy.
Result<void> check_abi(std::uint32_t major, std::uint32_t minor_needed);

// Checks sizes, versions, functions and all descriptors. An error message begins with a verb and is
// appended to the plugin's name: "is not ...". Members unknown to this host are ignored.
Result<std::vector<PluginDescription>> check_entry(const bh_entry *entry);

}  // namespace bulkhead
