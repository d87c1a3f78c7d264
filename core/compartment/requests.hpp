// A compartment's blocking requests to its supervisor, one at a time.
//
// Thread: any. All except `dial` only while plugins start and configure, never on the request path;
// `sign` never on the reactor's thread.
#pragma once

#include "compartment/control.hpp"
#include "plugin/services.hpp"

namespace bulkhead {

// `socket` must outlive the result.
HostServices services_over(int socket);

}  // namespace bulkhead
