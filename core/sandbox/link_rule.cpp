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
  known_.clear();
}

// Returns those of the folders that are equal to `path` or contain it.
std::vector<LinkRule::Identity> LinkRule::around(const std::string &path) const {
  if (known_.empty()) {
    for (const std::string &folder : folders_) {
      Identity identity;
      if (identify(folder, &identity)) known_.push_back(identity);
    }
  }
  std::vector<Identity> out;
  for (std::string at = path;; at = parent_of(at)) {
    Identity identity;
    if (identify(at, &identity) &&
        std::find(known_.begin(), known_.end(), identity) != known_.end()) {
      out.push_back(identity);
    }
    if (at == "/") return out;
  }
}

const PathWalk::Link *LinkRule::rejected(const PathWalk &walk) const {
  if (walk.links.empty()) return nullptr;
  const std::vector<Identity> end = around(walk.end);
  for (const PathWalk::Link &link : walk.links) {
    const std::string folder = parent_of(link.at);
    if (distrust_all_ && !is_within(walk.end, folder)) return &link;
    for (const Identity &identity : around(folder)) {
      if (std::find(end.begin(), end.end(), identity) == end.end()) return &link;
    }
  }
  return nullptr;
}

std::string LinkRule::outermost(const std::string &folder) const {
  if (distrust_all_) return folder;
  const std::vector<Identity> found = around(folder);
  std::string out;
  for (std::string at = folder; !found.empty(); at = parent_of(at)) {
    Identity identity;
    if (identify(at, &identity) && identity == found.back()) return at;
    if (at == "/") break;
  }
  return out;
}

bool LinkRule::can_change(const std::string &path) const {
  return !around(parent_of(path)).empty();
}

}  // namespace bulkhead
