// Paths of the file system: their parts as text, what is there, and where it really is.
//
// Thread: any; a KnownPlaces: one. Errors: a path that cannot be looked up does not exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bulkhead {

// ---- text -----------------------------------------------------------------------------------

std::string joined(const std::string &folder, std::string_view name);
std::string parent_of(const std::string &path);  // of "/" and of a name: "/"
std::string_view base_of(std::string_view path) noexcept;
// Without ".", ".." and slashes at the end.
std::string normal_path(const std::string &path);

// True if `path` is `folder` or below it; both without a trailing slash.
bool is_within(std::string_view path, std::string_view folder) noexcept;
// True if the path is "/", or one of the folders is at or below it.
bool holds_any(const std::string &path, const std::vector<std::string> &folders);

// ---- look-ups ---------------------------------------------------------------------------------

bool is_folder(const std::string &path);
bool exists(const std::string &path);

// The absolute path without links, "." and ".."; empty if it does not exist.
std::string real_path(const std::string &path);

// Resolved locations of the paths that every view looks up: secrets, services, caches. Servers
// that start together share them. An entry is valid for `fresh_ns` after the first look-up; then
// all are discarded. A change within that time takes effect as if the server had started earlier.
// Paths that a definition names are never taken from here, since a server may have changed what is
// writable.
class KnownPlaces {
 public:
  static constexpr std::uint64_t fresh_ns = 500'000'000;
  static constexpr std::size_t most = 1024;  // paths

  // Discards expired entries. Call before a view is planned.
  void refresh(std::uint64_t now_ns);
  // As real_path(). `path`: absolute, without "." and "..".
  std::string real(const std::string &path);

 private:
  std::string look_up(const std::string &path);
  std::unordered_map<std::string, std::string> known_;
  std::uint64_t since_ns_ = 0;
};

}  // namespace bulkhead
