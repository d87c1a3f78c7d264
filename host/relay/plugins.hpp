// Declares the relay's two plugins, which are linked statically.
#pragma once

#include "bulkhead/abi/plugin.h"

namespace bulkhead::relay {

const bh_entry *stdio_entry();
const bh_entry *vsock_entry();

}  // namespace bulkhead::relay
