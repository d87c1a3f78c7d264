// Finds the home directories of the user that runs the gateway.
#pragma once

#include "sandbox/child_view.hpp"

namespace bulkhead {

// Adds the home directory from the user database and the one that HOME names to request->homes, the
// directories whose secrets are hidden. Sets request->home if it is empty. Also calls
// find_services().
void find_homes(ViewRequest *request);

}  // namespace bulkhead
