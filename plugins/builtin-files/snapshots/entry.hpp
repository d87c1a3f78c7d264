// Defines an entry: one path of a workspace or of a snapshot.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/snapshots/hash.hpp"

namespace builtin_files {

enum class Kind : std::uint8_t { file = 1, folder = 2, link = 3 };

// Fields of stat(2) that change when the file changes. Programs cannot set the ctime (changed_ns).
struct Signature {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  bool operator==(const Signature &) const = default;
};

struct Entry {
  std::string path;  // relative to the workspace
  Kind kind = Kind::file;
  bool stored = false;   // the object store contains the file's content
  bool settled = false;  // no recent changes, so the signature is reliable
  std::uint32_t mode = 0, uid = 0, gid = 0;
  Signature signature;
  Hash hash{};         // content hash of a file; valid if `stored` is true
  std::string target;  // target of a link
};

using Entries = std::vector<Entry>;  // sorted with path_less()

// Returns true if `a` precedes `b` in traversal order: a folder, then its contents, then its later
// siblings.
bool path_less(std::string_view a, std::string_view b) noexcept;

// Returns true if `path` is equal to `folder` or below it. If `folder` is "" or ".", this is true
// for every path.
bool is_within(std::string_view path, std::string_view folder) noexcept;

const Entry *find_entry(const Entries &entries, std::string_view path) noexcept;

Signature signature_of(const struct stat &s) noexcept;

// Returns the permission bits that snapshots compare and restore. The set-user-ID, set-group-ID and
// sticky bits are excluded.
constexpr std::uint32_t kept_mode(std::uint32_t mode) noexcept {
  return mode & 0777;
}

}  // namespace builtin_files
