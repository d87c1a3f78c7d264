// Functions for file system paths: operations on the path text, existence checks, and resolution of
// symbolic links.
//
// All functions are thread-safe, but a KnownPlaces object must be used on one thread. A path that
// cannot be looked up is treated as nonexistent, except by means_missing() and is_unreachable().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bulkhead {

struct WalkBudget;

// ---- text -----------------------------------------------------------------------------------

std::string joined(const std::string &folder, std::string_view name);
// Returns "/" for "/" and for a name without a slash.
std::string parent_of(const std::string &path);
std::string_view base_of(std::string_view path) noexcept;
// Resolves "." and ".." as text, without following links, and removes trailing slashes.
std::string normal_path(const std::string &path);

// Returns true if `path` is `folder` or below it. Neither may have a trailing slash.
bool is_within(std::string_view path, std::string_view folder) noexcept;
// Returns true if the path is "/", one of the folders, or an ancestor of one of them.
bool holds_any(const std::string &path, std::span<const std::string> folders);

// ---- look-ups ---------------------------------------------------------------------------------

bool is_folder(const std::string &path);
bool exists(const std::string &path);
// Returns true if this process may look up the entries of a folder.
bool is_searchable(const std::string &folder);
// Returns true if an error of a look-up means that the path does not exist, and false if it may
// exist but could not be looked up.
bool means_missing(int error) noexcept;
// Returns true for a mount point whose file system does not respond, such as that of a network file
// server, or rejects this user, such as another user's FUSE file system. The path's type cannot be
// determined, but mount points of such file systems are folders.
bool is_unreachable(const std::string &path);

// Returns the absolute path without symbolic links, "." or "..". Returns an empty string if the
// path does not exist, or if its resolution exceeded a limit or lacked resources
// (PathWalk::given_up).
std::string real_path(const std::string &path, WalkBudget *budget = nullptr);

// Caches the resolved locations of paths that are looked up for every sandbox view (secrets,
// services, caches), so servers that start together share the look-ups. All entries expire
// together, `fresh_ns` after the cache was last cleared. Until then, changes to existing paths are
// not noticed. Missing paths are not cached: a credential that was created since the last start
// must be hidden. Must not be used for paths from a definition, because a server may have changed
// what they refer to.
class KnownPlaces {
 public:
  static constexpr std::uint64_t fresh_ns = 500'000'000;
  static constexpr std::size_t most = 1024;  // maximum number of cached paths

  // Clears the cache if it has expired or is full. Must be called before a sandbox view is planned.
  void refresh(std::uint64_t now_ns);
  // Returns the same result as real_path(), possibly from the cache. `path` must be absolute and
  // must not contain "." or "..". A result is not cached if the path is missing, or if a walk with
  // this budget or, without a budget, this look-up was given up (PathWalk::given_up).
  std::string real(const std::string &path, WalkBudget *budget = nullptr);

 private:
  std::string look_up(const std::string &path, WalkBudget *budget, bool *missing);
  std::unordered_map<std::string, std::string> known_;
  std::uint64_t since_ns_ = 0;
};

}  // namespace bulkhead
