// Do all plugins of a profile exist, and are their configurations what they ask for? Said of all of
// them at once, before any of their code runs.
#pragma once

#include <string>
#include <vector>

#include "plugin/loader.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// Every mistake as a line for people ("file:line: path: what"), each once. Instances that the
// profile can do without are left out: they show their own failure. A plugin that says nothing of
// its configuration in its file (docs/plugins.md) is checked when it is loaded. Fills in
// the PluginFile of every plugin in the profile, optional ones included. Thread: control. It
// reads the plugins' files; nothing of them runs.
std::vector<std::string> check_plugins(Profile *profile);

// The plugins in the profile's folders, and then those that the profile names by a path, each once.
// Of these the library is checked as for a start; of the others the manifest is read. Thread: any.
std::vector<FoundPlugin> find_plugins(const Profile &profile);

}  // namespace bulkhead::program
