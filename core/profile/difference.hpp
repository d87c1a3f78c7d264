// Compares the running profile with the profile that replaces it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// Returns true if a reload can keep the server's connections, which is the case if the definitions
// differ only in allow_tools, deny_tools, root_folders, time-outs, max_in_flight, source, origin
// and stored lists.
bool same_wire(const ServerDef &was, const ServerDef &is);
// Return true if both arguments are equal except for their origins.
bool same_server(const ServerDef &was, const ServerDef &is);
bool same_use(const PluginUse &was, const PluginUse &is);

// Returns the names of the gateway settings that differ, for example "naming" and
// "limits.call_timeout_ms".
std::vector<std::string> changed_settings(const Profile &was, const Profile &is);

// Returns the tools plugins of `is` that are in both profiles and whose file has changed. The
// pointers point into `is`.
std::vector<const PluginUse *> with_changed_files(const std::vector<PluginUse> &was,
                                                  const std::vector<PluginUse> &is);

// Returns one line for each plugin that is in both profiles and whose file has changed, with the
// name of the group: "tools.X: file changed; new version runs".
std::vector<std::string> changed_files(std::string_view group, const std::vector<PluginUse> &was,
                                       const std::vector<PluginUse> &is);
// If a tools plugin in `next` differs only in its file and runs in the router's process (`here`
// returns true), its running file is kept. Returns one line for each such plugin: "tools.X: file
// changed; needs a restart".
std::vector<std::string> keep_files(const std::vector<PluginUse> &now, std::vector<PluginUse> *next,
                                    const std::function<bool(const PluginUse &)> &here);

// Changes `next` so that a running gateway can apply it: everything that can change only with a
// restart keeps its current value. Returns one line for each such change, for example
// "transports.http: needs a restart", and for each plugin whose file is missing. For a policy whose
// use in the profile has changed, the line also says which policy is in force until the restart. If
// `reload_policies` is set, a policy that differs only in its configuration can be applied without
// a restart.
std::vector<std::string> keep_fixed(const Profile &now, Profile *next,
                                    bool reload_policies = false);

}  // namespace bulkhead
