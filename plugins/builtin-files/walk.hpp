// Visits the files below a folder in order of their names, with limits.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "builtin-files/tools.hpp"

namespace builtin_files {

// A file visited by a walk.
struct Found {
  const std::string &path;  // relative to the workspace
  int folder;               // the open folder that contains it
  const char *name;         // name in that folder
  bool is_folder;
  std::size_t level;  // 0 for entries of the start folder
};

struct WalkOptions {
  bool gitignore = false;   // skip files ignored by .gitignore files below `folder`
  std::size_t levels = 64;  // deeper folders are reported but not entered
};

// Calls on_entry for each file and folder below `folder`, whose path is `path`. A folder precedes
// its contents. Symbolic links are skipped; folders named .git are not entered. Stops if on_entry
// returns false. Returns an empty string, or the reason why the walk is incomplete.
std::string walk(const Call &call, Fd folder, const std::string &path,
                 const std::function<bool(const Found &)> &on_entry,
                 const WalkOptions &options = {});

}  // namespace builtin_files
