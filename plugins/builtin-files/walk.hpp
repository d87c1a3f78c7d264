// Walking over the files below a folder, in the order of names, with bounds.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "builtin-files/tools.hpp"

namespace builtin_files {

// A file that the walk has come to.
struct Found {
  const std::string &path;  // relative to the workspace
  int folder;               // the open folder that holds it
  const char *name;         // in that folder
  bool is_folder;
  std::size_t level;  // 0: directly in the folder that the walk began in
};

struct WalkOptions {
  bool gitignore = false;   // what .gitignore files below `folder` name is left out
  std::size_t levels = 64;  // deeper folders are shown, not entered
};

// Calls on_entry for each file and folder below `folder` (whose path is `path`), folders before
// their content; symbolic links and folders named .git are not entered, links not shown. Ends early
// when on_entry returns false. Returns an empty text, or why not everything was visited.
std::string walk(const Call &call, Fd folder, const std::string &path,
                 const std::function<bool(const Found &)> &on_entry,
                 const WalkOptions &options = {});

}  // namespace builtin_files
