// Builds the Landlock rules for a server. If the view is built with mounts, the rules are a second
// layer of protection against writes. Without mounts, they are the only protection of files.
#pragma once

#include <string>

#include "sandbox/child_view.hpp"
#include "sandbox/landlock.hpp"

namespace bulkhead {

// With `mounts`, the rules restrict only writing: a server can change only the writable paths of
// its view. The child adds the rules for the folders that it mounts itself.
//
// Without `mounts`, the rules grant access entry by entry, to everything except the hidden paths. A
// folder that contains a hidden path then cannot be listed, and files created in it later cannot be
// opened. `cache`, which contains TMPDIR, is writable. /tmp is also writable unless it contains a
// path that is hidden or has fewer rights.
Result<OwnedFd> child_landlock(const ChildView &view, bool mounts, const std::string &cache);

}  // namespace bulkhead
