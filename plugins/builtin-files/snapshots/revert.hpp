// Restores paths of a workspace from a snapshot. Each path is replaced atomically.
#pragma once

#include <cstdint>
#include <string>

#include "builtin-files/snapshots/store.hpp"

namespace builtin_files {

struct Reverted {
  std::uint64_t restored = 0, deleted = 0, unchanged = 0;
  std::string problem;  // the error that ended the revert early; restored paths are kept
};

// `path` is a file, link or folder of the snapshot, or "." for everything. Paths at or below it
// that are not in the snapshot are deleted. Unchanged paths, and files whose content could not be
// stored, are left unchanged. The caller must hold the lock of the store.
Reverted revert(const Call &call, SnapshotStore *store, const Manifest &snapshot,
                const std::string &path);

}  // namespace builtin_files
