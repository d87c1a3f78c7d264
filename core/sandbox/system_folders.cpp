#include "sandbox/system_folders.hpp"

#include <algorithm>
#include <iterator>

#include "sandbox/paths.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view system_tops[] = {"bin",    "sbin", "lib",  "lib32", "lib64",
                                            "libx32", "usr",  "etc",  "opt",   "nix",
                                            "gnu",    "dev",  "proc", "sys"};

constexpr std::string_view closed_roots[] = {"/usr", "/bin",  "/sbin", "/lib", "/lib32", "/lib64",
                                             "/etc", "/boot", "/proc", "/sys", "/dev",   "/run"};
// The contents of these folders may be granted, but not the folders themselves.
constexpr std::string_view closed_tops[] = {"/",    "/home", "/root",  "/var", "/opt",
                                            "/srv", "/mnt",  "/media", "/tmp", "/var/tmp"};

}  // namespace

bool is_system_top(std::string_view name) noexcept {
  return std::find(std::begin(system_tops), std::end(system_tops), name) != std::end(system_tops);
}

bool in_closed_root(const std::string &path) noexcept {
  return std::any_of(std::begin(closed_roots), std::end(closed_roots),
                     [&](std::string_view root) { return is_within(path, root); });
}

bool is_closed(const std::string &path) noexcept {
  return in_closed_root(path) ||
         std::find(std::begin(closed_tops), std::end(closed_tops), path) != std::end(closed_tops);
}

}  // namespace bulkhead
