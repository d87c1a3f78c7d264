// The libraries that this process has mapped. A library is never unmapped, because thread-locals,
// callbacks or static objects of the plugin may still exist (see docs/plugins.md). Its file
// descriptor stays open, because glibc identifies a mapping by the name /proc/self/fd/N.
//
// Thread-safe.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"
#include "plugin/plugin_file.hpp"

namespace bulkhead {

// Maps the verified file unless it is already mapped, and returns its entry function. Mapping runs
// the library's static constructors, which may be slow or hang. Returns BH_E_INVALID if the file
// has been changed since it was mapped. Error messages begin with a verb, because the caller
// prepends the plugin's name.
//
// If `sealed_sha256` is set, `fd` is a sealed copy with this digest. Two copies with the same
// digest share one mapping, and a copy never shares a mapping with a file that could be changed.
Result<bh_plugin_entry_fn> map_library(OwnedFd fd, const struct stat &status,
                                       const std::string &sealed_sha256 = {});

// Stores the name of a plugin whose static constructor hangs. Such a constructor holds a lock in
// the dynamic linker, so no other library can be mapped, and a normal exit() would block.
// Therefore, an exit handler terminates the process immediately. If the constructor returns after
// all, set_stuck({}) clears the name.
void set_stuck(std::string plugin);
std::string stuck();

}  // namespace bulkhead
