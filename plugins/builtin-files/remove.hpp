// Removes a folder tree. Never follows a link.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace builtin_files {

struct Removed {
  std::uint64_t files = 0;  // including folders and links
  std::string problem;      // empty: everything was removed
};

// Removes `name` in the open folder and everything below it, at most 64 levels. stop is polled for
// each entry; entries removed before it returned true stay removed.
Removed remove_tree(int folder, const std::string &name, const std::function<bool()> &stop);

}  // namespace builtin_files
