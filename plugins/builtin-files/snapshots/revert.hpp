// Restores paths of a workspace from a snapshot. Each path is replaced atomically.
#pragma once

#include <cstdint>
#include <string>

#include "builtin-files/snapshots/store.hpp"

namespace builtin_files {

struct Reverted {
  std::uint64_t restored = 0, deleted = 0, unchanged = 0;
  std::string problem;  // error that ended the revert early; paths already restored stay restored
};

// `path` is a file, link or folder of the snapshot, or "." for everything. Paths at or below it
// that are not in the snapshot are deleted. Equal paths, and files whose content the snapshot could
// not store, are left unchanged. The caller must hold the lock of the store.
Reverted revert(const Call &call, SnapshotStore *store, const Manifest &snapshot,
                const std::string &path);

}  // namespace builtin_files
