// Resolves a path one component at a time and reports each symbolic link on the way. Thread-safe.
//
// Servers can create deep folders and long chains of links. The number of components is therefore
// limited, both for each path and for all paths that share a WalkBudget. The cost of a walk is
// linear in this number.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace bulkhead {

// Limits the total number of components of several walks.
struct WalkBudget {
  static constexpr std::size_t most = 32'768;
  std::size_t left = most;
  std::string failed;  // the first path whose walk was given up, or empty
};

struct PathWalk {
  struct Folder {
    dev_t device = 0;
    ino_t inode = 0;
    std::size_t above = 0;  // index of its parent; the index of "/" is 0
  };
  struct Link {
    std::string at;          // path of the link; none of its parent components is a link
    std::string target;      // as it was read
    bool last = false;       // whether no components of the path remained after the link
    std::size_t folder = 0;  // index of the folder that contains it
  };
  static constexpr std::size_t most_links = 40;  // the kernel's limit
  static constexpr std::size_t most_components = 512;

  std::vector<Folder> folders;  // the folders on the way, starting with "/"
  std::vector<Link> links;      // in the order in which they are followed
  // The path without links. If it does not exist, the components after the first missing one are
  // appended as text.
  std::string end;
  std::size_t innermost = 0;  // index of the last existing folder of `end`
  // The folder in which a look-up failed although the entry may exist, for example because the
  // folder may not be searched. Empty if there is none.
  std::string closed;
  // False also if a folder may not be searched, or if there are more than most_links links.
  bool exists = false;
  // It is unknown where the path leads: the path is too long or has too many components, or this
  // process lacks resources. `exists` is false, and `end` is a path on the way.
  bool given_up = false;
};

// `path` must be absolute. Without a budget, only the limits for a single path apply.
PathWalk walk_path(const std::string &path, WalkBudget *budget = nullptr);

}  // namespace bulkhead
