// The plugins of the endpoint that call out: each runs in a compartment of its own,
// "egress.KIND.ID", that reaches the one server that its configuration names, and nothing else.
#pragma once

#include <string_view>

#include "compartment/slice.hpp"

namespace bulkhead::program {

// Is it one of ours that calls out?
bool calls_out(std::string_view plugin);

// What the compartment of such a plugin may reach, by "url" and "socket" of its configuration: a
// Unix socket through the supervisor and no network, or TCP to the URL's port. A configuration that
// names nothing sensible gets nothing; the plugin refuses it.
void allow_egress(std::string_view config, SlicePrivileges *may);

}  // namespace bulkhead::program
