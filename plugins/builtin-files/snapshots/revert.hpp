// Putting paths of a workspace back to what a snapshot has. Each path goes in one step from what it
// is to what it was.
#pragma once

#include <cstdint>
#include <string>

#include "builtin-files/snapshots/store.hpp"

namespace builtin_files {

struct Reverted {
  std::uint64_t restored = 0, deleted = 0, unchanged = 0;
  std::string problem;  // why it ended early; what was done until then stays
};

// path: a file, link or folder, as the snapshot knows it, or "." for everything. What is at the
// path (or in the folder) and not in the snapshot is deleted, what is there alike is left alone,
// and what the snapshot could not store is left alone, too. The store is locked by the caller.
Reverted revert(const Call &call, SnapshotStore *store, const Manifest &snapshot,
                const std::string &path);

}  // namespace builtin_files
