// Validates the value that a plugin's entry function returns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"

namespace bulkhead {

// The host's copy of a plugin's descriptor. Members that an older plugin does not provide are
// empty.
struct PluginDescription {
  std::string id, name, version, vendor, config_schema;
  std::vector<std::string> provides;
};

// Returns the version of an ABI as users read it, such as "1.0" or "1.0-rc1".
std::string abi_version(std::uint32_t major, std::uint32_t minor, std::uint32_t candidate = 0);

// Returns an error if the ABI's major version is different, or if the plugin requires a minor
// version newer than BH_ABI_MINOR. The error message contains both versions and tells the user what
// to do.
Result<void> check_abi(std::uint32_t major, std::uint32_t minor_needed);

// Returns an error if the plugin was built for another release candidate than BH_ABI_RC, or if only
// one of plugin and host was built for a candidate.
Result<void> check_candidate(const bh_entry &entry);

// Checks the entry's sizes, versions and functions, and all descriptors. Returns copies of the
// descriptors. Error messages do not contain the plugin's name, because the caller prepends it.
// Members that this host does not know are ignored.
Result<std::vector<PluginDescription>> check_entry(const bh_entry *entry);

}  // namespace bulkhead
