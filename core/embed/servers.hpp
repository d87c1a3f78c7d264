// Creates the router's upstreams from the servers and tools plugins of the profile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "embed/host_core.hpp"
#include "embed/host_plugins.hpp"
#include "embed/remote_plugins.hpp"
#include "host.hpp"
#include "route/reload.hpp"

namespace bulkhead {

class Servers {
 public:
  Servers(HostCore &core, HostPlugins &plugins, RemotePlugins &remote)
      : core_(core), plugins_(plugins), remote_(remote) {}

  // Adds the servers and tools plugins of the profile. Returns an error if a required plugin does
  // not offer tools. Must be called once, before the host starts.
  Result<void> add_all();
  // Disables servers whose connector has failed to start.
  void drop_failed_connectors();

  // ---- reload of a server or tools plugin ----
  // Returns the upstream to run, which is either kept or new, and adds it to the report. `fresh` is
  // true if the plugin was loaded by this reload.
  NextUpstream next(const ServerDef &def, ApplyReport *report);
  NextUpstream next(Part &tools, bool fresh, ApplyReport *report);
  void set_running(std::vector<ServerDef> servers) { running_ = std::move(servers); }
  // Creates the folder to which connectors write the servers' stderr.
  void make_log_folder() const;

 private:
  ServerDef complete(const ServerDef &def) const;
  std::unique_ptr<Upstream> make(const ServerDef &def);
  std::unique_ptr<Upstream> make(Part &tools);

  HostCore &core_;
  HostPlugins &plugins_;
  RemotePlugins &remote_;
  std::vector<ServerDef> running_;  // servers of the profile and of plugins
};

const ServerDef *find_server(const std::vector<ServerDef> &servers, std::string_view name);

}  // namespace bulkhead
