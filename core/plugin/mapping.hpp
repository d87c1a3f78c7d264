// The libraries that this process has mapped. A library is never unmapped: thread-locals, callbacks
// or static objects of the plugin may remain (see docs/plugins.md). The descriptor stays open
// because glibc identifies a mapping by its /proc/self/fd name.
//
// Thread: any.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"
#include "plugin/plugin_file.hpp"

namespace bulkhead {

// Maps the checked file behind `fd`, unless it is already mapped, and returns its entry function.
// Runs the library's static constructors, so it may be slow or hang. Error texts continue the
// plugin's name.
Result<bh_plugin_entry_fn> map_library(OwnedFd fd, const struct stat &status);

// A hanging static constructor holds the dynamic linker's lock: no other library can be mapped, and
// exit() would block forever. set_stuck() records this and makes exit() end the process anyway.
// set_stuck({}) clears it if the constructor was only slow.
void set_stuck(std::string plugin);
std::string stuck();

}  // namespace bulkhead
