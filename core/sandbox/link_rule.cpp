#include "sandbox/link_rule.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "sandbox/paths.hpp"

namespace bulkhead {
namespace {

bool identify(const std::string &path, std::pair<dev_t, ino_t> *out) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return false;
  *out = {info.st_dev, info.st_ino};
  return true;
}

}  // namespace

void LinkRule::add(std::string folder) {
  if (std::find(folders_.begin(), folders_.end(), folder) != folders_.end()) return;
  folders_.push_back(std::move(folder));
}

void LinkRule::identify_folders() const {
  for (; identified_ < folders_.size(); ++identified_) {
    Identity identity;
    if (identify(folders_[identified_], &identity)) known_.insert(identity);
  }
}

// Returns the changeable folders that are equal to this folder of the walk or contain it.
std::set<LinkRule::Identity> LinkRule::around(const PathWalk &walk, std::size_t folder) const {
  identify_folders();
  std::set<Identity> out;
  for (std::size_t at = folder; at < walk.folders.size(); at = walk.folders[at].above) {
    const Identity identity{walk.folders[at].device, walk.folders[at].inode};
    if (known_.contains(identity)) out.insert(identity);
    if (at == 0) break;
  }
  return out;
}

const PathWalk::Link *LinkRule::rejected(const PathWalk &walk) const {
  if (walk.links.empty()) return nullptr;
  const std::set<Identity> end = around(walk, walk.innermost);
  for (const PathWalk::Link &link : walk.links) {
    if (distrust_all_ && !is_within(walk.end, parent_of(link.at))) return &link;
    const std::set<Identity> start = around(walk, link.folder);
    if (!std::includes(end.begin(), end.end(), start.begin(), start.end())) return &link;
  }
  return nullptr;
}

std::string LinkRule::outermost(const std::string &folder) const {
  if (distrust_all_) return folder;
  identify_folders();
  std::string out;
  for (std::string at = folder;; at = parent_of(at)) {
    Identity identity;
    if (identify(at, &identity) && known_.contains(identity)) out = at;
    if (at == "/") return out;
  }
}

bool LinkRule::can_change(const PathWalk &walk, const PathWalk::Link &link) const {
  return !around(walk, link.folder).empty();
}

}  // namespace bulkhead
