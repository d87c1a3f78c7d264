// The paths that a view hides. A path is hidden together with every symbolic link that leads to it
// and with the links' targets, even if these do not exist yet. Must be used on one thread.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/home_folders.hpp"
#include "sandbox/link_rule.hpp"
#include "sandbox/path_walk.hpp"
#include "sandbox/paths.hpp"

namespace bulkhead {

class HiddenPaths {
 public:
  // The arguments are borrowed. `places` may be null. The budget limits the paths that are resolved
  // in order to hide something. If one of them fails, the server must not start, because something
  // may not be hidden.
  HiddenPaths(const HomeFolders &homes, KnownPlaces *places, WalkBudget *budget)
      : homes_(homes), places_(places), budget_(budget) {}

  // Adds a path, which need not exist. Ignores the home directories of the gateway and folders that
  // contain one. If a link leads to a required path, only the link is added. If a folder may not be
  // searched, it is added as well. Returns the real path if it exists and is to be covered, or the
  // folder that may not be searched, or an empty string.
  std::string add(const std::string &path);
  // Does not hide this path, its real path, or a folder that contains one of them as the target of
  // a link. The real path is ignored if `rule` rejects the links in the path.
  void require(const std::string &path, const LinkRule &rule);
  // Returns true if a path must not be hidden because a link leads to it, which a server may have
  // created: it is a home directory, a system folder, a file in one that all users may read, or a
  // required path, or it contains a home directory or a required path.
  bool is_required(const std::string &path) const;
  // Treats this folder like a home directory when it is mirrored.
  void add_top(const std::string &folder) { tops_.push_back(folder); }

  // All hidden paths. Their parent folders contain no links.
  const std::set<std::string> &all() const noexcept { return all_; }
  // Also the folders in these home directories that several programs share.
  std::set<std::string> all_and_shared(const std::vector<std::string> &homes) const;
  // Returns true if a path is such a folder.
  bool is_shared(const std::string &path) const;
  // Folders outside the home directories to which a folder in a home directory is a link.
  const std::vector<std::string> &tops() const noexcept { return tops_; }
  // The walks of hidden paths that contain links.
  const std::vector<PathWalk> &walks() const noexcept { return walks_; }

  // Returns true if a path leads through symbolic links to a home directory or a hidden path and
  // does not itself name that place. `end` is the path without links.
  bool are_reached(const std::string &path, const std::string &end) const;

  // Returns the real path, using the look-up cache if there is one. Must be used only for paths
  // that are looked up for every view.
  std::string real(const std::string &path) const;
  // Resolves the symbolic links in a path's parent folders. The path itself need not exist.
  std::string place_of(const std::string &path) const { return look_up(path).path; }

 private:
  struct Place {
    std::string path;
    std::size_t known;  // the length of `path` up to its first component that may not exist
  };
  Place look_up(const std::string &path) const;
  std::string add_linked(const std::string &path);
  void add_target(const std::string &link);

  const HomeFolders &homes_;
  KnownPlaces *const places_;
  WalkBudget *const budget_;
  std::set<std::string> all_;
  // For each hidden path that is reached through a link: the path and its name with links.
  std::vector<std::pair<std::string, std::string>> names_;
  std::vector<PathWalk> walks_;
  std::vector<std::string> tops_, required_;
};

}  // namespace bulkhead
