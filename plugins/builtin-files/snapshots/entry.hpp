// One path of a workspace, as it is now or as a snapshot has it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/snapshots/hash.hpp"

namespace builtin_files {

enum class Kind : std::uint8_t { file = 1, folder = 2, link = 3 };

// What stat(2) says that changes when a content does. The kernel sets ctime; nobody else can.
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
  bool stored = false;   // a file whose content is in the store under `hash`
  bool settled = false;  // the signature was older than the look at it: it can be trusted
  std::uint32_t mode = 0, uid = 0, gid = 0;
  Signature signature;
  Hash hash{};         // of a file, with `stored`
  std::string target;  // of a link
};

using Entries = std::vector<Entry>;  // in the order of path_less()

// The order in which a walk comes to paths: a folder, then what is in it, then what follows.
bool path_less(std::string_view a, std::string_view b) noexcept;

// Is path the folder itself or in it? "" and ".": everything is.
bool is_within(std::string_view path, std::string_view folder) noexcept;

const Entry *find_entry(const Entries &entries, std::string_view path) noexcept;

Signature signature_of(const struct stat &s) noexcept;

// Permission bits that snapshots compare and restore; not those that set users or groups.
constexpr std::uint32_t kept_mode(std::uint32_t mode) noexcept {
  return mode & 0777;
}

}  // namespace builtin_files
