// Is what a plugin's entry function returned something that this host can use?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"

namespace bulkhead {

// What the host keeps of a descriptor: copied, members that an older plugin lacks are empty.
struct PluginDescription {
  std::string id, name, version, vendor, config_schema;
  std::vector<std::string> provides;
};

// Refuses a plugin of another ABI major, or one that needs a newer minor than `host_minor`; the
// text names both versions and what to do.
Result<void> check_abi(std::uint32_t major, std::uint32_t minor_needed);

// Checks sizes, versions, functions and every descriptor. Errors are written to follow the plugin's
// name: "is not ...". Members beyond what this host knows are not looked at.
Result<std::vector<PluginDescription>> check_entry(const bh_entry *entry);

}  // namespace bulkhead
