// The libraries that this process has mapped. Nothing is ever unmapped: a plugin may have left
// thread-locals, callbacks or static objects behind (see docs/plugins.md), and the descriptor stays
// open because glibc knows a mapping by its /proc/self/fd name.
//
// Thread: any.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"
#include "plugin/plugin_file.hpp"

namespace bulkhead {

// Maps the checked file behind `fd` (or finds that it is mapped already) and returns its entry
// function. Runs the library's static constructors, so it may hang or be slow. Error texts are
// written to follow the plugin's name.
Result<bh_plugin_entry_fn> map_library(OwnedFd fd, const struct stat &status);

// A static constructor that hangs holds the dynamic linker's lock: no other library can be mapped
// any more, and exit() would wait for ever. set_stuck() remembers that and makes exit() end the
// process all the same; set_stuck({}) is for a constructor that was only slow.
void set_stuck(std::string plugin);
std::string stuck();

}  // namespace bulkhead
