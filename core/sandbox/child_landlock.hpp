// A server's Landlock rules. With mounts, they are a second protection against writes; without
// mounts, they are the only protection.
#pragma once

#include <string>

#include "sandbox/child_view.hpp"
#include "sandbox/landlock.hpp"

namespace bulkhead {

// With `mounts`, everything in the view may be read and executed, but only its writable paths may
// be changed; the child adds rules for the folders that it mounts itself.
//
// Without mounts, the rules list everything around the hidden paths. A folder that contains a
// hidden path then cannot be listed, and files created in it later cannot be opened. `cache` and
// /tmp are writable; if a path in /tmp is hidden, only TMPDIR is writable.
Result<OwnedFd> child_landlock(const ChildView &view, bool mounts, const std::string &cache);

}  // namespace bulkhead
