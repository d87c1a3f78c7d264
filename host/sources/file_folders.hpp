// Resolves the folders of the builtin file tools (sandbox/named_folder.hpp).
#pragma once

#include "profile/profile.hpp"
#include "sandbox/child_view.hpp"

namespace bulkhead::program {

// Returns a request for the view of a server of this profile. `policy` is the server's and is
// borrowed.
ViewRequest view_request(const Profile &profile, const ChildPolicy *policy);

// Replaces the paths in the configuration of builtin-files by paths without symbolic links, and
// sets "resolved", so that the plugin follows no link that is created later. If a path leads
// through a link that must not be followed, removes the tools plugin and adds a note. Requires that
// state_dir and the protected paths are set.
void resolve_file_folders(Profile *profile);

}  // namespace bulkhead::program
