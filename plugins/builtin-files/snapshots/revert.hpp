// Restores workspace paths from a snapshot. Each path is replaced atomically.
#pragma once

#include <cstdint>
#include <string>

#include "builtin-files/snapshots/store.hpp"

namespace builtin_files {

struct Reverted {
  std::uint64_t restored = 0, deleted = 0, unchanged = 0;
  std::uint64_t skipped = 0;  // files whose content is not in the snapshot
  std::string problem;        // error that stopped the revert; restored paths are kept
};

// Restores `path` and all paths below it; "." is the whole workspace. Deletes paths at or below
// `path` that are not in the snapshot. A file whose content is not in the snapshot stays unchanged;
// if it is the only path to restore, the revert fails. The caller must hold store->lock().
Reverted revert(const Call &call, SnapshotStore *store, const Manifest &snapshot,
                const std::string &path);

}  // namespace builtin_files
