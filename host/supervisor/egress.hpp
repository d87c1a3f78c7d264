// Determines which plugins of the endpoint run in an egress compartment, and what each may access.
//
// A plugin that connects to other hosts runs in a separate compartment "egress.KIND.ID". This
// compartment may connect only to the Unix socket or the TCP port in the plugin's configuration.
#pragma once

#include <string_view>

#include "compartment/slice.hpp"

namespace bulkhead::program {

// Returns true if this is a plugin of this distribution that connects to other hosts.
bool calls_out(std::string_view plugin);

// Grants the compartment access to the server in the plugin's configuration. If "socket" is set,
// the server is a Unix socket. The supervisor connects to it on behalf of the compartment, which
// has no network access. Otherwise, the compartment may connect to the TCP port in "url". An
// invalid configuration grants nothing, and the plugin rejects it later.
void allow_egress(std::string_view config, SlicePrivileges *may);

}  // namespace bulkhead::program
