// Checks the value that a plugin's entry function returned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"

namespace bulkhead {

// The host's copy of a descriptor; members that an older plugin lacks are empty.
struct PluginDescription {
  std::string id, name, version, vendor, config_schema;
  std::vector<std::string> provides;
};

// Refuses a plugin of another ABI major, or one that needs a newer minor than `host_minor`. The
// error contains both versions and the remedy.
Result<void> check_abi(std::uint32_t major, std::uint32_t minor_needed);

// Checks sizes, versions, functions and every descriptor. Error texts continue the plugin's name:
// "is not ...". Members that this host does not know are ignored.
Result<std::vector<PluginDescription>> check_entry(const bh_entry *entry);

}  // namespace bulkhead
