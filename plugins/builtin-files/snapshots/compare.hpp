// Compares a workspace with a snapshot, or two snapshots with each other.
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
  const Entry *now;     // nullptr if op is deleted
  const Entry *before;  // nullptr if op is created
  const Entry &entry() const noexcept { return now != nullptr ? *now : *before; }
};

// Calls on_change for each file or link that differs between `now` and `before`. Folders are not
// reported. same() must return true if two entries with the same path and kind are equal.
void for_each_change(const Entries &now, const Entries &before,
                     const std::function<bool(const Entry &, const Entry &)> &same,
                     const std::function<void(const Change &)> &on_change);

// Compares two entries that are both from snapshots.
bool same_entry(const Entry &a, const Entry &b) noexcept;

// Compares entries of the current workspace with snapshot entries. If the signatures do not prove
// that a file is unchanged, compares its content. Reads each file at most once, even if it is
// compared with many snapshots.
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
