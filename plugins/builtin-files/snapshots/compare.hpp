// Compares a workspace with a snapshot, or two snapshots.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>

#include "builtin-files/snapshots/entry.hpp"
#include "builtin-files/tools.hpp"

namespace builtin_files {

enum class Op { created, modified, deleted };
std::string_view op_name(Op op) noexcept;

struct Change {
  Op op;
  const Entry *now;     // nullptr if deleted
  const Entry *before;  // nullptr if created
  const Entry &entry() const noexcept { return now != nullptr ? *now : *before; }
};

// Reports files and links, but not folders, that differ between `now` and `before`. same() compares
// two entries of the same path and kind.
void for_each_change(const Entries &now, const Entries &before,
                     const std::function<bool(const Entry &, const Entry &)> &same,
                     const std::function<void(const Change &)> &on_change);

// Compares entries of two snapshots.
bool same_entry(const Entry &a, const Entry &b) noexcept;

// Compares entries with the current workspace: first by signature, and by content if the signature
// is inconclusive. Each file is read at most once, regardless of the number of snapshots.
class LiveCompare {
 public:
  LiveCompare(const Call &call, const Workspace &workspace) : call_(call), workspace_(workspace) {}
  bool same(const Entry &live, const Entry &kept);

 private:
  const Hash *hash_of_live(const Entry &live);

  const Call &call_;
  const Workspace &workspace_;
  std::unordered_map<const Entry *, Hash> hashes_;
};

}  // namespace builtin_files
