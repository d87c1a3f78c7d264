// Blocking requests from a compartment to its supervisor, one at a time.
//
// Thread-safe. All requests except `dial` are made only while plugins are being configured and
// started, never on the request path. `sign` must not be called on the reactor thread.
#pragma once

#include "compartment/control.hpp"
#include "plugin/services.hpp"

namespace bulkhead {

// `socket` must outlive the returned services.
HostServices services_over(int socket);

}  // namespace bulkhead
