// The home directories whose secrets are hidden, under all paths at which they are mounted. Must be
// used on one thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/path_walk.hpp"
#include "sandbox/same_mounts.hpp"

namespace bulkhead {

class HomeFolders {
 public:
  HomeFolders() : mounts_(MountTable::of_this_process()) {}

  // Adds a home directory and the other paths at which it is mounted. Ignores a path that is not a
  // folder, is "/", or is in a system folder.
  void add(const std::string &home, WalkBudget *budget);
  // Adds the home directory from a server's definition in the same way. `real` is its path without
  // links. Must be called after every add().
  void add_servers(const std::string &home, const std::string &real);

  // The real paths, in the order in which they were added.
  const std::vector<std::string> &all() const noexcept { return all_; }
  // Those that do not come from a server's definition.
  std::span<const std::string> of_gateway() const noexcept { return {all_.data(), gateways_}; }
  const MountTable &mounts() const noexcept { return mounts_; }
  // Parts of home directories that are mounted at a second path.
  const std::vector<MountTable::Other> &parts() const noexcept { return parts_; }

  bool is_home(const std::string &path) const;
  bool contain(const std::string &path) const;
  // Returns true if the path is a home directory or contains one.
  bool are_within(const std::string &path) const;
  // Like are_within(), but ignores the home directory from the server's definition. A server can
  // choose that directory, so it must not exempt a path from being hidden.
  bool of_gateway_are_within(const std::string &path) const;
  // If the path begins with a home directory's name that contains symbolic links, replaces that
  // name with the home directory's real path. Returns other paths unchanged.
  std::string with_real_home(const std::string &path) const;

 private:
  const MountTable mounts_;
  std::vector<std::string> all_;
  std::size_t gateways_ = 0;  // the first `gateways_` of all_ were added with add()
  std::vector<MountTable::Other> parts_;
  std::vector<std::pair<std::string, std::string>> names_;  // other names, each with the real path
};

}  // namespace bulkhead
