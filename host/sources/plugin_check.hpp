// Checks that all plugins in a profile exist and that their configuration matches their schemas.
// All errors are reported together, before any plugin code runs.
#pragma once

#include <string>
#include <vector>

#include "plugin/loader.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// Returns every error as a line for the user ("file:line: path: text"), without duplicates.
// Optional plugins are skipped, because they report their own errors. Plugins without a schema
// (docs/plugins.md) are checked when they are loaded. Also sets the PluginFile of every plugin in
// the profile.
//
// Blocks for file access. Reads the plugin files but runs none of their code.
std::vector<std::string> check_plugins(Profile *profile);

// Returns the plugins in the profile's plugin directories, followed by those that the profile names
// by path, without duplicates. Plugins named by path are checked completely. For the others, only
// the manifest is read. Thread-safe.
std::vector<FoundPlugin> find_plugins(const Profile &profile);

}  // namespace bulkhead::program
