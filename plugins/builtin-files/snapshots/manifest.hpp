// The file of one snapshot: paths with the hashes of their contents. Written once, renamed into
// place, and never changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/snapshots/entry.hpp"

namespace builtin_files {

struct Head {
  unsigned slot = 0;           // from the name of the file
  std::uint64_t sequence = 0;  // increases with each snapshot of the store
  std::int64_t created_s = 0;  // Unix time
  bool manual = false;
  std::string name;
  std::uint64_t files = 0;              // files and links
  std::uint64_t skipped = 0;            // entries that the snapshot does not have; see Scan
  Hash hash{};                          // of the contents: equal hashes mean equal snapshots
  std::vector<std::uint64_t> replaces;  // the snapshots that were compacted into this one
};

struct Manifest {
  Head head;
  Entries entries;
};

// Sets files and hash of the head from the entries.
void complete(Manifest *manifest);

std::string encode(const Manifest &manifest);

// nullopt: not a manifest, or damaged.
std::optional<Manifest> decode(std::string_view bytes);
// Decodes the head at the front of the file, without checking the rest.
std::optional<Head> decode_head(std::string_view bytes);
inline constexpr std::size_t max_head_bytes = 1024;

}  // namespace builtin_files
