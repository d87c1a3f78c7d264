// Encodes and decodes manifests. A snapshot has one manifest file, which lists the paths in the
// snapshot with their content hashes. The file is written once, renamed to its final name, and
// never modified.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/snapshots/entry.hpp"

namespace builtin_files {

struct Head {
  unsigned slot = 0;           // taken from the file name
  std::uint64_t sequence = 0;  // increases with each snapshot of the store
  std::int64_t created_s = 0;  // Unix time
  bool manual = false;
  std::string name;
  std::uint64_t files = 0;  // number of files and links
  // Number of entries that are not included (see Scan) and of files whose content is not stored.
  std::uint64_t skipped = 0;
  Hash hash{};  // hash of all entries; snapshots with equal hashes are equal
  std::vector<std::uint64_t> replaces;  // sequence numbers of compacted snapshots
};

struct Manifest {
  Head head;
  Entries entries;
};

// Computes head.files and head.hash from the entries.
void complete(Manifest *manifest);

std::string encode(const Manifest &manifest);

// Returns nullopt if `bytes` is not an intact manifest.
std::optional<Manifest> decode(std::string_view bytes);
// Decodes the head from the first max_head_bytes of the file. The entries are not checked.
std::optional<Head> decode_head(std::string_view bytes);
inline constexpr std::size_t max_head_bytes = 1024;

}  // namespace builtin_files
