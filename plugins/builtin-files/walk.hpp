// Visits the files below a folder in name order, within limits.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "builtin-files/tools.hpp"

namespace builtin_files {

// A file or folder that the walk visits.
struct Found {
  const std::string &path;  // relative to the workspace
  int folder;               // open folder that contains the entry
  const char *name;         // name in that folder
  bool is_folder;
  std::size_t level;  // 0 for entries of the start folder
};

struct WalkOptions {
  bool gitignore = false;   // skip files that .gitignore files in the visited folders exclude
  std::size_t levels = 64;  // folders at the last level are visited but not entered
};

// Calls on_entry for each file and folder below the open folder `folder`, whose path is `path`.
// Visits a folder before its contents, skips symbolic links and the plugin's temporary files, and
// does not enter folders named .git. Stops if on_entry returns false. If the walk is incomplete for
// any other reason, returns the reason, otherwise an empty string.
std::string walk(const Call &call, Fd folder, const std::string &path,
                 const std::function<bool(const Found &)> &on_entry,
                 const WalkOptions &options = {});

}  // namespace builtin_files
