// File system paths: their components as text, and look-ups of existence and real location.
//
// Thread-safe, except KnownPlaces, which is used on one thread. A path that cannot be looked up is
// treated as nonexistent.
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
std::string parent_of(const std::string &path);  // returns "/" for "/" and for a name without a
                                                 // slash
std::string_view base_of(std::string_view path) noexcept;
// Removes ".", ".." and trailing slashes.
std::string normal_path(const std::string &path);

// Returns true if `path` is `folder` or below it. Neither may have a trailing slash.
bool is_within(std::string_view path, std::string_view folder) noexcept;
// Returns true if the path is "/", or if one of the folders is the path or below it.
bool holds_any(const std::string &path, const std::vector<std::string> &folders);

// ---- look-ups ---------------------------------------------------------------------------------

bool is_folder(const std::string &path);
bool exists(const std::string &path);

// Returns the absolute path without links, "." or "..". If the path does not exist, returns an
// empty string.
std::string real_path(const std::string &path);

// Resolved locations of paths that every view looks up: secrets, services, caches. They are shared
// by servers that start together. All entries expire together, `fresh_ns` after the first look-up;
// until then, file system changes are not seen. Not used for paths that a definition names, because
// a server may have changed them.
class KnownPlaces {
 public:
  static constexpr std::uint64_t fresh_ns = 500'000'000;
  static constexpr std::size_t most = 1024;  // paths

  // Discards expired entries. Must be called before a view is planned.
  void refresh(std::uint64_t now_ns);
  // Like real_path(). `path` must be absolute, without "." and "..".
  std::string real(const std::string &path);

 private:
  std::string look_up(const std::string &path);
  std::unordered_map<std::string, std::string> known_;
  std::uint64_t since_ns_ = 0;
};

}  // namespace bulkhead
