// Resolves the folders that the profile names for the gateway's own file tools.
//
// A server that can change a folder can replace everything in it by a symbolic link. If the file
// tools followed such a link, their clients would read and write the link's target. The rule for
// these links is therefore the same as for the paths of a server's definition (child_view.hpp).
#pragma once

#include <string>

#include "base/owned_fd.hpp"
#include "sandbox/child_view.hpp"

namespace bulkhead {

struct NamedFolder {
  std::string path;     // without symbolic links; empty if the folder must not be used
  std::string problem;  // the reason, as a part of a sentence
};

// `path` must be absolute. `request` contains the homes and the gateway's own files, and the
// folders that servers can change; its policy must grant write access to `path`. If the path does
// not exist, it is returned unchanged, unless it contains a link. A server may change the path at
// any time, so it must be opened with open_without_links().
NamedFolder resolve_named_folder(const std::string &path, const ViewRequest &request);

// Opens a path with O_PATH. Fails with ELOOP if the path contains a symbolic link. Always fails
// with ENOSYS on kernels older than 5.6, which cannot check this.
OwnedFd open_without_links(const std::string &path);

}  // namespace bulkhead
