// Egress compartments. A plugin of the endpoint that connects to other hosts runs in a separate
// compartment "egress.KIND.ID", which can reach only the server that its configuration names.
#pragma once

#include <string_view>

#include "compartment/slice.hpp"

namespace bulkhead::program {

// Returns true for plugins of this distribution that connect to other hosts.
bool calls_out(std::string_view plugin);

// Derives the targets that the plugin's compartment may reach from "url" and "socket" in its
// configuration: a Unix socket through the supervisor without network access, or TCP to the URL's
// port. An invalid configuration grants nothing; the plugin rejects it.
void allow_egress(std::string_view config, SlicePrivileges *may);

}  // namespace bulkhead::program
