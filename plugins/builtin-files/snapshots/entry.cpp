#include "builtin-files/snapshots/entry.hpp"

#include <algorithm>

namespace builtin_files {
namespace {

// Defines the sort order of characters: "/" precedes all others, so "a/b" precedes "a-b".
unsigned rank(char c) noexcept {
  return c == '/' ? 0 : static_cast<unsigned char>(c) + 1u;
}

std::int64_t nanoseconds(const timespec &t) noexcept {
  return static_cast<std::int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

bool path_less(std::string_view a, std::string_view b) noexcept {
  const std::size_t n = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (a[i] != b[i]) return rank(a[i]) < rank(b[i]);
  }
  return a.size() < b.size();
}

bool is_within(std::string_view path, std::string_view folder) noexcept {
  if (folder.empty() || folder == ".") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

const Entry *find_entry(const Entries &entries, std::string_view path) noexcept {
  const auto at =
      std::lower_bound(entries.begin(), entries.end(), path,
                       [](const Entry &e, std::string_view p) { return path_less(e.path, p); });
  return at != entries.end() && at->path == path ? &*at : nullptr;
}

Signature signature_of(const struct stat &s) noexcept {
  return {s.st_ino, static_cast<std::uint64_t>(s.st_size), nanoseconds(s.st_mtim),
          nanoseconds(s.st_ctim)};
}

}  // namespace builtin_files
