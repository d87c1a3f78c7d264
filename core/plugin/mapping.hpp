// The libraries that this process has mapped. A library is never unmapped, because thread-locals,
// callbacks or static objects of the plugin may still exist (see docs/plugins.md). Its descriptor
// stays open because glibc identifies a mapping by its /proc/self/fd name.
//
// Thread-safe.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"
#include "plugin/plugin_file.hpp"

namespace bulkhead {

// Maps the checked file behind `fd` unless it is already mapped, and returns its entry function.
// Runs the library's static constructors, so it may be slow or hang. An error message begins with a
// verb and is appended to the plugin's name.
Result<bh_plugin_entry_fn> map_library(OwnedFd fd, const struct stat &status);

// Records a plugin whose static constructor hangs, and lets exit() terminate the process anyway.
// The constructor holds the dynamic linker's lock, so no other library can be mapped and exit()
// would block forever. If the constructor was only slow, set_stuck({}) clears the record.
void set_stuck(std::string plugin);
std::string stuck();

}  // namespace bulkhead
