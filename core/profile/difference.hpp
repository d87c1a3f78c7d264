// Differences between the running profile and its replacement.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// True if the connections to a server that was defined as `was` can be kept: at most tool lists,
// root folders, time-outs of calls and limits differ.
bool same_wire(const ServerDef &was, const ServerDef &is);
// Returns true if at most the origins differ.
bool same_server(const ServerDef &was, const ServerDef &is);
bool same_use(const PluginUse &was, const PluginUse &is);

// Returns the names of the gateway's own settings that differ: "naming", "limits.call_timeout_ms".
std::vector<std::string> changed_settings(const Profile &was, const Profile &is);

// Lists tools plugins of both profiles whose file has changed: "tools.X: file changed; new version
// runs".
std::vector<std::string> changed_files(const std::vector<PluginUse> &was,
                                       const std::vector<PluginUse> &is);
// Keeps the running file for each tools plugin of `next` that runs in the router's process (`here`)
// and differs only in its file. Returns a line for each such plugin: "tools.X: file changed; needs
// a restart".
std::vector<std::string> keep_files(const std::vector<PluginUse> &now, std::vector<PluginUse> *next,
                                    const std::function<bool(const PluginUse &)> &here);

// Returns the changes in `next` that a running gateway cannot apply, as text ("transports.http:
// needs a restart"), and resets those parts of `next` to the running ones. For a policy, the line
// also states which policy decides until the restart. If `reload_policies` is set, policies that
// differ only in their configuration are not reset.
std::vector<std::string> keep_fixed(const Profile &now, Profile *next,
                                    bool reload_policies = false);

}  // namespace bulkhead
