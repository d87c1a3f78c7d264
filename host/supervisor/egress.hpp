// Egress compartments. A plugin of the endpoint that connects to other hosts runs in a separate
// compartment "egress.KIND.ID", which can reach only the server that its configuration names.
#pragma once

#include <string_view>

#include "compartment/slice.hpp"

namespace bulkhead::program {

// Returns true for plugins of this distribution that connect to other hosts.
bool calls_out(std::string_view plugin);

// Grants the plugin's compartment access to the target of "url" and "socket" in its configuration:
// either a Unix socket that the supervisor connects, without network access, or TCP to the URL's
// port. An invalid configuration grants nothing; the plugin rejects it later.
void allow_egress(std::string_view config, SlicePrivileges *may);

}  // namespace bulkhead::program
