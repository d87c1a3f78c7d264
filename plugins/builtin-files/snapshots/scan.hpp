// What a workspace holds now.
#pragma once

#include <cstdint>
#include <string>

#include "builtin-files/snapshots/entry.hpp"
#include "builtin-files/tools.hpp"

namespace builtin_files {

inline constexpr std::size_t max_scanned = 1'000'000;  // entries of a workspace with snapshots

struct Scan {
  Entries entries;            // files without hash, links with their targets
  std::uint64_t skipped = 0;  // what is no file, folder or link, and folders that cannot be read
  std::string problem;        // why there is no result; empty: there is one
};

// Of `path` (a folder; "." for all) and below. Links are not followed.
Scan scan(const Call &call, const Workspace &workspace, const std::string &path);

// Of one path; none if it is not there.
Scan scan_one(const Workspace &workspace, const std::string &path);

}  // namespace builtin_files
