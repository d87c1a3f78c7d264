// Resolves a path one component at a time and reports each symbolic link on the way. Thread-safe.
//
// Servers can create deep folders and long chains of links, so the number of components is limited,
// for each path and for all paths of a view, and the cost of a walk is linear in it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace bulkhead {

// Limits the components of several walks.
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
    std::string at;          // the link itself; its parent folders contain no links
    std::string target;      // as it was read
    bool last = false;       // no component of the path followed the link
    std::size_t folder = 0;  // index of the folder that contains it
  };
  static constexpr std::size_t most_links = 40;  // the kernel's limit
  static constexpr std::size_t most_components = 512;

  std::vector<Folder> folders;  // those that were passed
  std::vector<Link> links;      // in the order in which they are followed
  // The path without links. If it does not exist, the components after the first one that is
  // missing are appended unchanged.
  std::string end;
  std::size_t innermost = 0;  // index of the last existing folder of `end`
  // A folder that may not be searched, or whose look-up failed for another reason than a missing
  // entry, so it is unknown what it contains; or empty.
  std::string closed;
  // False also if a folder may not be searched, or if there are more than most_links links.
  bool exists = false;
  // It is unknown where the path leads: it has too many components, or this process lacks
  // resources. `exists` is false, and `end` is a folder on the way.
  bool given_up = false;
};

// `path` must be absolute. Without a budget, only this path is limited.
PathWalk walk_path(const std::string &path, WalkBudget *budget = nullptr);

}  // namespace bulkhead
