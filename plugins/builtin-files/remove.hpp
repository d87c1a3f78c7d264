// Removes a folder tree. Never follows symbolic links.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace builtin_files {

struct Removed {
  std::uint64_t files = 0;  // including folders and links
  std::string problem;      // empty if everything was removed
};

// Removes `name` in the open folder and everything below it, up to 64 levels deep. `stop` is
// checked for each entry; if it returns true, the remaining entries are kept.
Removed remove_tree(int folder, const std::string &name, const std::function<bool()> &stop);

}  // namespace builtin_files
