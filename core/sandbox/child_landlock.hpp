// Landlock for a server: behind the mounts a second refusal of writes, without them all there is.
#pragma once

#include <string>

#include "sandbox/child_view.hpp"
#include "sandbox/landlock.hpp"

namespace bulkhead {

// With `mounts`, what the view shows may be read and executed as it is, and only its writable paths
// be changed; the child adds the folders that it mounts itself. Without, the covered paths are left
// out by naming everything around them, so that a folder with a covered one in it cannot be listed
// and files that appear in it later cannot be opened; `cache` and /tmp may be written (/tmp not
// if something in it is hidden: then TMPDIR is all there is).
Result<OwnedFd> child_landlock(const ChildView &view, bool mounts, const std::string &cache);

}  // namespace bulkhead
