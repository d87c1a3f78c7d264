// Implements hot reload of the profile. Parts that have not changed are kept. New parts are created
// first, and then the router receives the new set of servers in one step.
#pragma once

#include <string>
#include <vector>

#include "embed/host_core.hpp"
#include "embed/host_plugins.hpp"
#include "embed/policies.hpp"
#include "embed/remote_plugins.hpp"
#include "embed/servers.hpp"
#include "host.hpp"

namespace bulkhead {

class ProfileReload {
 public:
  ProfileReload(HostCore &core, HostPlugins &plugins, RemotePlugins &remote, Policies &policies,
                Servers &servers)
      : core_(core), plugins_(plugins), remote_(remote), policies_(policies), servers_(servers) {}

  // Makes `next` the current profile. `servers` contains all servers to run, including servers that
  // plugins have added. If an error is returned, nothing has changed.
  Result<ApplyReport> apply(Profile next, std::vector<ServerDef> servers);

 private:
  struct NextTools;

  void use_tool_files(Profile *next, ApplyReport *report) const;
  void record_files(const Profile &next) const;
  void use_policy_mark(Profile *next, ApplyReport *report) const;
  Result<void> load_tools(const Profile &next, NextTools *out);
  void exchange_servers(std::vector<ServerDef> servers, NextTools tools, ApplyReport *report);

  HostCore &core_;
  HostPlugins &plugins_;
  RemotePlugins &remote_;
  Policies &policies_;
  Servers &servers_;
  // Running servers can read or change files that the current profile protects. Stays true until no
  // server runs, even if each has been restarted.
  bool views_outdated_ = false;
};

}  // namespace bulkhead
