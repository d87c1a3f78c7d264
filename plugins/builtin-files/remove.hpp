// Removing what is below a folder. Never follows a link.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace builtin_files {

struct Removed {
  std::uint64_t files = 0;  // folders and links, too
  std::string problem;      // empty: everything is gone
};

// Removes `name` in the open folder with all that is below it, at most 64 levels. stop is asked at
// each entry; what is gone until then stays gone.
Removed remove_tree(int folder, const std::string &name, const std::function<bool()> &stop);

}  // namespace builtin_files
