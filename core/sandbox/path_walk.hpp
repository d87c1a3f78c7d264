// Resolves a path one component at a time and reports each symbolic link on the way. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bulkhead {

struct PathWalk {
  struct Link {
    std::string at;      // the link itself; its parent folders contain no links
    std::string target;  // as it was read
    bool last = false;   // no component of the path followed the link
  };
  static constexpr std::size_t most_links = 40;  // the kernel's limit

  std::vector<Link> links;  // in the order in which they are followed
  // The path without links. If it does not exist, the components after the first one that is
  // missing are appended unchanged.
  std::string end;
  // A folder that may not be searched, or whose look-up failed for another reason than a missing
  // entry, so it is unknown what it contains; or empty.
  std::string closed;
  // False also if a folder may not be searched, or if there are more than most_links links.
  bool exists = false;
};

// `path` must be absolute.
PathWalk walk_path(const std::string &path);

}  // namespace bulkhead
