// Defines Part, one of the host's plugins. It runs in this process or in a compartment.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "link/policy_client_stub.hpp"
#include "link/telemetry_client_stub.hpp"
#include "plugin_base/plugin_runtime.hpp"
#include "route/session.hpp"

namespace bulkhead {

class Upstream;
struct HostParts;

struct Part : PluginPart {
  HostParts *host = nullptr;
  bool finished = false;           // for a transport: it can accept no more clients
  std::unique_ptr<ClientEnd> end;  // for a transport: receives the messages for its sessions
  Upstream *upstream = nullptr;    // for a tools plugin: the upstream that it implements
  std::string compartment;         // empty if the plugin runs in this process
  // The client stub of a policy or telemetry plugin that runs in a compartment.
  std::unique_ptr<link::PolicyClientStub> policy_stub;
  std::unique_ptr<link::TelemetryClientStub> telemetry_stub;
};
using Parts = std::vector<std::unique_ptr<Part>>;

}  // namespace bulkhead
