// Lists the current contents of a workspace.
#pragma once

#include <cstdint>
#include <string>

#include "builtin-files/snapshots/entry.hpp"
#include "builtin-files/tools.hpp"

namespace builtin_files {

// Maximum number of entries per scan. Larger workspaces cannot have snapshots.
inline constexpr std::size_t max_scanned = 1'000'000;

struct Scan {
  Entries entries;            // file entries have no hash
  std::uint64_t skipped = 0;  // number of special files and unreadable folders
  std::string problem;        // error message; empty if the scan succeeded
};

// Scans the folder `path` recursively. "." is the whole workspace; any other folder is itself the
// first entry. Links are not followed.
Scan scan(const Call &call, const Workspace &workspace, const std::string &path);

// Scans one file, link or folder. Returns no entry if the path does not exist.
Scan scan_one(const Workspace &workspace, const std::string &path);

}  // namespace builtin_files
