// Removes folders recursively. Never follows symbolic links.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace builtin_files {

struct Removed {
  std::uint64_t files = 0;  // number of removed files, links and folders
  std::string problem;      // error message; empty if everything was removed
};

// Removes the entry `name` of the open folder `folder` with its contents. Fails if the contents are
// nested more than 64 levels deep. Calls `stop` before each entry and fails if `stop` returns true.
Removed remove_tree(int folder, const std::string &name, const std::function<bool()> &stop);

}  // namespace builtin_files
