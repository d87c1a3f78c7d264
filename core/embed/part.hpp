// One plugin of the host, in this process or in a compartment.
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
  bool finished = false;           // for a transport: no more clients can connect
  std::unique_ptr<ClientEnd> end;  // for a transport: receives the messages of its sessions
  Upstream *upstream = nullptr;    // for a tools plugin: its upstream
  std::string compartment;         // empty if it runs in this process
  // Stub of a policy or telemetry plugin that runs in a compartment.
  std::unique_ptr<link::PolicyClientStub> policy_stub;
  std::unique_ptr<link::TelemetryClientStub> telemetry_stub;
};
using Parts = std::vector<std::unique_ptr<Part>>;

}  // namespace bulkhead
