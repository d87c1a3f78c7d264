// The paths that a view hides. If a path is a symbolic link, the link and all further links up to
// its target are hidden, and so is the target, even if it does not exist yet. Links to a parent
// folder are not hidden. Must be used on one thread.
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
  // The arguments are borrowed. `places` may be null. The budget limits the resolution of paths to
  // hide. If it is exceeded (WalkBudget::failed), the server must not start, because a path may not
  // be hidden.
  HiddenPaths(const HomeFolders &homes, KnownPlaces *places, WalkBudget *budget)
      : homes_(homes), places_(places), budget_(budget) {}

  // Adds a path, which need not exist. Ignores the home directories of the gateway and folders that
  // contain one. If a link leads to a required path, only the link is added. If a folder on the way
  // may not be searched, the folder is added as well. Returns the path that the caller must cover:
  // the real path if it exists, or the folder that may not be searched, or an empty string if there
  // is nothing to cover.
  std::string add(const std::string &path);
  // Adds a path and its real path to the required paths; see is_required(). The real path is not
  // added if `rule` rejects a link in the path.
  void require(const std::string &path, const LinkRule &rule);
  // Returns true if a path must not be hidden merely because a link leads to it, since a server may
  // have created the link. This applies to home directories, required paths, folders that contain
  // one of these, system folders, and files in system folders that all users may read.
  bool is_required(const std::string &path) const;
  // Treats this folder like a home directory when folders are mirrored (folders_to_mirror()).
  void add_top(const std::string &folder) { tops_.push_back(folder); }

  // All hidden paths. None of their parent components is a link.
  const std::set<std::string> &all() const noexcept { return all_; }
  // All hidden paths, and the folders in `homes` that several programs share (shared_at_home()).
  std::set<std::string> all_and_shared(const std::vector<std::string> &homes) const;
  // Returns true if a path is a folder in a home directory that several programs share.
  bool is_shared(const std::string &path) const;
  // The folders from add_top(), and folders outside the home directories that are the targets of
  // links in a home directory.
  const std::vector<std::string> &tops() const noexcept { return tops_; }
  // The walks of those hidden paths that may contain links.
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
    std::size_t known;  // length of `path` up to and including the first component not looked up
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
