// Determines which symbolic links in a definition's paths may be followed.
//
// If a server can change a folder, it can replace anything in it with a link. If such a link were
// followed at the next start of this or another server, that server would gain access to the link's
// target. Therefore, a link in such a folder is followed only if the target is in the same folder.
//
// Folders are compared by device and inode, so another mount or another name of the same folder is
// recognized. A LinkRule must be used on one thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/path_walk.hpp"

namespace bulkhead {

class LinkRule {
 public:
  // Adds a folder that a server can change.
  void add(std::string folder);
  // Rejects every link that leads out of its folder. Used if it is unknown which folders servers
  // can change.
  void distrust_all() { distrust_all_ = true; }

  // Returns a link of `walk` that must not be followed, or null if there is none.
  const PathWalk::Link *rejected(const PathWalk &walk) const;
  // Returns true if a server can change this link of `walk`.
  bool can_change(const PathWalk &walk, const PathWalk::Link &link) const;
  // Returns the outermost of `folder` and its parents that a server can change, or an empty string
  // if there is none. After distrust_all(), returns `folder`.
  std::string outermost(const std::string &folder) const;

 private:
  using Identity = std::pair<dev_t, ino_t>;
  void identify_folders() const;
  std::set<Identity> around(const PathWalk &walk, std::size_t folder) const;

  std::vector<std::string> folders_;
  mutable std::set<Identity> known_;  // the identities of the first `identified_` folders
  mutable std::size_t identified_ = 0;
  bool distrust_all_ = false;
};

}  // namespace bulkhead
