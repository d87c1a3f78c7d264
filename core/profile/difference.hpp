// Differences between the running profile and its replacement.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// Returns true if the server's connections can be kept, because only tool lists, root folders, call
// time-outs and limits differ.
bool same_wire(const ServerDef &was, const ServerDef &is);
// Returns true if only the origins differ.
bool same_server(const ServerDef &was, const ServerDef &is);
bool same_use(const PluginUse &was, const PluginUse &is);

// Returns the names of the gateway's own settings that differ: "naming", "limits.call_timeout_ms".
std::vector<std::string> changed_settings(const Profile &was, const Profile &is);

// Lists tools plugins of both profiles whose files have changed: "tools.X: file changed; new
// version runs".
std::vector<std::string> changed_files(const std::vector<PluginUse> &was,
                                       const std::vector<PluginUse> &is);
// Keeps the running file of each tools plugin in `next` that differs only in its file and runs in
// the router's process (`here`). Returns a line for each: "tools.X: file changed; needs a restart".
std::vector<std::string> keep_files(const std::vector<PluginUse> &now, std::vector<PluginUse> *next,
                                    const std::function<bool(const PluginUse &)> &here);

// In `next`, resets the parts that a running gateway cannot apply to their running values. Returns
// a line for each ("transports.http: needs a restart"); for a policy, the line also names the
// policy that decides until the restart. If `reload_policies` is set, policies that differ only in
// their configuration are not reset.
std::vector<std::string> keep_fixed(const Profile &now, Profile *next,
                                    bool reload_policies = false);

}  // namespace bulkhead
