// Differences between the running profile and the next one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// True if the connections to a server that was defined as `was` can be kept: at most tool lists,
// root folders, time-outs of calls and limits differ.
bool same_wire(const ServerDef &was, const ServerDef &is);
// True if only the origins differ.
bool same_server(const ServerDef &was, const ServerDef &is);
bool same_use(const PluginUse &was, const PluginUse &is);

// The settings of the gateway itself that differ, by name: "naming", "limits.call_timeout_ms".
std::vector<std::string> changed_settings(const Profile &was, const Profile &is);

// Tools plugins of both profiles whose file has changed: "tools.X: file changed; new version runs".
std::vector<std::string> changed_files(const std::vector<PluginUse> &was,
                                       const std::vector<PluginUse> &is);
// Tools plugins of `next` that run in the router's process (`here`) and differ in their file only
// keep the file that runs. Returns a line for each: "tools.X: file changed; needs a restart".
std::vector<std::string> keep_files(const std::vector<PluginUse> &now, std::vector<PluginUse> *next,
                                    const std::function<bool(const PluginUse &)> &here);

// Returns the changes in `next` that a running gateway cannot apply, as text ("transports.http:
// needs a restart"), and resets those parts of `next` to the running ones. For a policy the line
// also states which policy decides until then. reload_policies: policies that differ in their
// configuration alone are not reset.
std::vector<std::string> keep_fixed(const Profile &now, Profile *next,
                                    bool reload_policies = false);

}  // namespace bulkhead
