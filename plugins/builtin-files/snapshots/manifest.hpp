// A snapshot as one file: which paths there were, with the hashes of their contents. Written once,
// put into place by a rename, and never changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/snapshots/entry.hpp"

namespace builtin_files {

struct Head {
  unsigned slot = 0;           // not in the file: its name
  std::uint64_t sequence = 0;  // grows with each snapshot of the store
  std::int64_t created_s = 0;  // Unix time
  bool manual = false;
  std::string name;
  std::uint64_t files = 0;  // files and links
  std::uint64_t skipped =
      0;        // what a snapshot does not hold; see Scan, and files that are too large
  Hash hash{};  // of what it holds: equal means the same
  std::vector<std::uint64_t> replaces;  // snapshots that this one was made of: they are no more
};

struct Manifest {
  Head head;
  Entries entries;
};

// Sets files and hash of the head from the entries.
void complete(Manifest *manifest);

std::string encode(const Manifest &manifest);

// nullopt: the bytes are no manifest, or damaged.
std::optional<Manifest> decode(std::string_view bytes);
// The head alone, from the front of the file; checks nothing behind it.
std::optional<Head> decode_head(std::string_view bytes);
inline constexpr std::size_t max_head_bytes = 1024;

}  // namespace builtin_files
