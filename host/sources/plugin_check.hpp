// Checks that all plugins of a profile exist and that their configurations match their schemas. All
// faults are reported at once, before any plugin code runs.
#pragma once

#include <string>
#include <vector>

#include "plugin/loader.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// Returns every fault as a line for the user ("file:line: path: text"), without duplicates.
// Optional instances are not included, because they report their own failures. A plugin whose file
// has no schema (docs/plugins.md) is checked when it is loaded. Also sets the PluginFile of every
// plugin in the profile, including optional plugins.
//
// Used on the control thread. Reads the plugins' files but runs none of their code.
std::vector<std::string> check_plugins(Profile *profile);

// Returns the plugins in the profile's folders, followed by the plugins that the profile names by
// path, each once. Plugins named by path are checked in the same way as for a start; for the
// others, only the manifest is read. Thread-safe.
std::vector<FoundPlugin> find_plugins(const Profile &profile);

}  // namespace bulkhead::program
