// Blocking requests from a compartment to the supervisor, one at a time.
//
// Thread-safe. Plugins make these requests while they are being configured or started, never while
// they handle calls. The exception is `dial`, which can be called at any time. `sign` must not be
// called on the reactor thread.
#pragma once

#include "compartment/control.hpp"
#include "plugin/services.hpp"

namespace bulkhead {

// `socket` must outlive the returned services.
HostServices services_over(int socket);

}  // namespace bulkhead
