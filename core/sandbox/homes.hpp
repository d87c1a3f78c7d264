// Finds the home folders of the user that runs the gateway.
#pragma once

#include "sandbox/child_view.hpp"

namespace bulkhead {

// Adds the home folders of the account and of the environment to the folders whose secrets are
// hidden. Sets `home` if it is empty.
void find_homes(ViewRequest *request);

}  // namespace bulkhead
