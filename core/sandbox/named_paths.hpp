// Collects the paths that a server's definition names. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/child_policy.hpp"
#include "sandbox/home_folders.hpp"
#include "sandbox/path_walk.hpp"
#include "sandbox/program_files.hpp"

namespace bulkhead {

struct NamedPath {
  enum class As : std::uint8_t { argument, folder, readable, writable };
  std::string path;
  As as = As::argument;
  PathWalk walk;
  FileKind kind = FileKind::data;  // of an argument; determined once, because it may change
};

// Returns the absolute paths in the definition's arguments, variables, working directory and
// sandbox_paths, in this order, without those that exceed PATH_MAX. A variable that names one of
// `homes` is left out.
std::vector<NamedPath> named_paths(const ChildPolicy &policy, const HomeFolders &homes,
                                   WalkBudget *budget);

}  // namespace bulkhead
