// Blocking requests from a compartment to the supervisor, one at a time.
//
// Thread-safe. A request blocks the calling thread for up to request_timeout_ms or, if other
// threads make requests, longer. The built-in plugins therefore make most requests only while they
// are configured or started. Only `dial` and `sign` are called later; `sign` must not be called on
// the reactor thread.
#pragma once

#include "compartment/control.hpp"
#include "plugin/services.hpp"

namespace bulkhead {

// `socket` must outlive the returned services.
HostServices services_over(int socket);

}  // namespace bulkhead
