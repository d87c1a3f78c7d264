// Scans the current contents of a workspace.
#pragma once

#include <cstdint>
#include <string>

#include "builtin-files/snapshots/entry.hpp"
#include "builtin-files/tools.hpp"

namespace builtin_files {

// Maximum number of entries in a workspace with snapshots.
inline constexpr std::size_t max_scanned = 1'000'000;

struct Scan {
  Entries entries;            // files without hash, links with their targets
  std::uint64_t skipped = 0;  // special files, and folders that cannot be read
  std::string problem;        // the error; empty if the scan succeeded
};

// Scans `path` (a folder, or "." for the whole workspace) recursively. Links are not followed.
Scan scan(const Call &call, const Workspace &workspace, const std::string &path);

// Scans one path. Returns no entry if the path does not exist.
Scan scan_one(const Workspace &workspace, const std::string &path);

}  // namespace builtin_files
