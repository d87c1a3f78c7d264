// Defines the host classes to which the extension tables forward plugin calls. Owner: HostImpl.
#pragma once

#include <functional>

#include "embed/host_core.hpp"

namespace bulkhead {

class HostPlugins;
class Policies;
class Sealer;
class ServerChanges;
struct Part;

struct HostParts {
  HostCore &core;
  HostPlugins &plugins;
  Policies &policies;
  ServerChanges &changes;
  const Sealer &sealer;
  // Called when a transport can accept no more clients.
  std::function<void(Part &transport)> on_finished;
};

}  // namespace bulkhead
