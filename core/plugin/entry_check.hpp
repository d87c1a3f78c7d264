// Validates the value that a plugin's entry function returns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"

namespace bulkhead {

// The host's copy of a plugin's descriptor. If an older plugin does not have a member, it is empty.
struct PluginDescription {
  std::string id, name, version, vendor, config_schema;
  std::vector<std::string> provides;
};

// Returns an error if the ABI's major version is different, or if the plugin requires a newer minor
// version than `host_minor`. The error has both versions and tells the user what to do.
Result<void> check_abi(std::uint32_t major, std::uint32_t minor_needed);

// Checks sizes, versions, functions and all descriptors. Error messages begin with a verb ("is not
// ..."), since the caller puts the plugin's name in front. Members that this host does not know are
// ignored.
Result<std::vector<PluginDescription>> check_entry(const bh_entry *entry);

}  // namespace bulkhead
