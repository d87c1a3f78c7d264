// A compartment's requests to its supervisor: asked and waited for, one at a time.
//
// Thread: any. All but `dial` only while plugins start and configure, never on the request path;
// `sign` never on the reactor's thread.
#pragma once

#include "compartment/control.hpp"
#include "plugin/services.hpp"

namespace bulkhead {

// `socket` must outlive the result.
HostServices services_over(int socket);

}  // namespace bulkhead
