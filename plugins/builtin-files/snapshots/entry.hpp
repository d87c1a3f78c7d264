// One path of a workspace, in its current state or in a snapshot.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/snapshots/hash.hpp"

namespace builtin_files {

enum class Kind : std::uint8_t { file = 1, folder = 2, link = 3 };

// Fields of stat(2) that change when the content changes. Programs cannot set the ctime.
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
  bool stored = false;   // the store contains the file's content under `hash`
  bool settled = false;  // the signature was old enough to be reliable when scanned
  std::uint32_t mode = 0, uid = 0, gid = 0;
  Signature signature;
  Hash hash{};         // set for files if `stored` is true
  std::string target;  // set for links
};

using Entries = std::vector<Entry>;  // in the order of path_less()

// Traversal order: a folder, then its contents, then its siblings.
bool path_less(std::string_view a, std::string_view b) noexcept;

// Returns true if `path` is the folder itself or below it; always true if `folder` is "" or ".".
bool is_within(std::string_view path, std::string_view folder) noexcept;

const Entry *find_entry(const Entries &entries, std::string_view path) noexcept;

Signature signature_of(const struct stat &s) noexcept;

// Returns the permission bits that snapshots compare and restore, without set-user-ID and
// set-group-ID.
constexpr std::uint32_t kept_mode(std::uint32_t mode) noexcept {
  return mode & 0777;
}

}  // namespace builtin_files
