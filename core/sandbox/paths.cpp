#include "sandbox/paths.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/owned_fd.hpp"
#include "sandbox/path_walk.hpp"

namespace bulkhead {

std::string joined(const std::string &folder, std::string_view name) {
  return folder == "/" ? "/" + std::string(name) : folder + "/" + std::string(name);
}

std::string parent_of(const std::string &path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

std::string_view base_of(std::string_view path) noexcept {
  // Without a slash, rfind() returns npos, and npos + 1 is 0.
  return path.substr(path.rfind('/') + 1);
}

std::string normal_path(const std::string &path) {
  std::string text = std::filesystem::path(path).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

bool is_within(std::string_view path, std::string_view folder) noexcept {
  if (folder.empty() || path.empty()) return false;
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool holds_any(const std::string &path, std::span<const std::string> folders) {
  return path == "/" || std::any_of(folders.begin(), folders.end(), [&](const std::string &folder) {
           return is_within(folder, path);
         });
}

bool is_folder(const std::string &path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool exists(const std::string &path) {
  return ::access(path.c_str(), F_OK) == 0;
}

bool is_searchable(const std::string &folder) {
  return ::faccessat(AT_FDCWD, folder.c_str(), X_OK, AT_EACCESS) == 0;
}

bool means_missing(int error) noexcept {
  return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

bool is_unreachable(const std::string &path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) return false;
  if (errno == EACCES) {
    // If the path itself can be opened, its parents can be searched. Then only another user's FUSE
    // file system rejects fstat(), even for root.
    const OwnedFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
    return fd && ::fstat(fd.get(), &info) != 0;
  }
  return errno == ENOTCONN || errno == EIO || errno == ESTALE || errno == ETIMEDOUT ||
         errno == EHOSTDOWN || errno == EHOSTUNREACH;
}

std::string real_path(const std::string &path, WalkBudget *budget) {
  if (path.starts_with('/')) {
    PathWalk walk = walk_path(path, budget);
    return walk.exists ? std::move(walk.end) : std::string();
  }
  char buffer[PATH_MAX];
  return path.empty() || ::realpath(path.c_str(), buffer) == nullptr ? std::string() : buffer;
}

void KnownPlaces::refresh(std::uint64_t now_ns) {
  if (now_ns - since_ns_ < fresh_ns && known_.size() < most) return;
  known_.clear();
  since_ns_ = now_ns;
}

std::string KnownPlaces::real(const std::string &path, WalkBudget *budget) {
  if (path.size() < 2 || !path.starts_with('/') || path.ends_with('/')) {
    return real_path(path, budget);
  }
  if (const auto at = known_.find(path); at != known_.end()) return at->second;
  WalkBudget own;
  if (budget == nullptr) budget = &own;
  bool missing = false;
  std::string found = look_up(path, budget, &missing);
  if (!missing && known_.size() < most && budget->failed.empty()) known_.emplace(path, found);
  return found;
}

// Resolves one component at a time so that each shared parent is looked up only once.
std::string KnownPlaces::look_up(const std::string &path, WalkBudget *budget, bool *missing) {
  const std::string above = parent_of(path);
  const std::string folder = above == "/" ? above : real(above, budget);
  if (folder.empty()) {
    *missing = true;
    return {};
  }
  std::string at = joined(folder, base_of(path));
  char link[1];
  if (::readlink(at.c_str(), link, sizeof link) >= 0) return real_path(path, budget);
  *missing = errno != EINVAL;  // EINVAL: the path exists and is not a link
  return *missing ? std::string() : at;
}

}  // namespace bulkhead
