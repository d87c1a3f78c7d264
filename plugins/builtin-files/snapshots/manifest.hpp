// The manifest file of a snapshot: its paths with the hashes of their contents. It is written once,
// renamed to its final name, and never changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/snapshots/entry.hpp"

namespace builtin_files {

struct Head {
  unsigned slot = 0;           // from the file name
  std::uint64_t sequence = 0;  // increases with each snapshot of the store
  std::int64_t created_s = 0;  // Unix time
  bool manual = false;
  std::string name;
  std::uint64_t files = 0;              // files and links
  std::uint64_t skipped = 0;            // entries missing from the snapshot; see Scan
  Hash hash{};                          // hash of the contents; equal hashes mean equal snapshots
  std::vector<std::uint64_t> replaces;  // the snapshots that were compacted into this one
};

struct Manifest {
  Head head;
  Entries entries;
};

// Sets the file count and the hash of the head from the entries.
void complete(Manifest *manifest);

std::string encode(const Manifest &manifest);

// Returns nullopt if the bytes are not a manifest or are damaged.
std::optional<Manifest> decode(std::string_view bytes);
// Decodes the head at the start of the file without checking the remaining bytes.
std::optional<Head> decode_head(std::string_view bytes);
inline constexpr std::size_t max_head_bytes = 1024;

}  // namespace builtin_files
