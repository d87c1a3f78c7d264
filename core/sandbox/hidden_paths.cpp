#include "sandbox/hidden_paths.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "sandbox/path_walk.hpp"
#include "sandbox/system_folders.hpp"

namespace bulkhead {
namespace {

bool is_link(const std::string &path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

}  // namespace

std::string HiddenPaths::real(const std::string &path) const {
  return places_ == nullptr ? real_path(path) : places_->real(path);
}

HiddenPaths::Place HiddenPaths::look_up(const std::string &path) const {
  std::string above = parent_of(path), rest(base_of(path));
  for (; above != "/"; above = parent_of(above)) {
    if (const std::string folder = real(above); !folder.empty()) {
      return {joined(folder, rest), joined(folder, rest.substr(0, rest.find('/'))).size()};
    }
    rest.insert(0, "/").insert(0, base_of(above));
  }
  return {"/" + rest, 1 + std::min(rest.find('/'), rest.size())};
}

std::string HiddenPaths::add(const std::string &path) {
  const Place place = look_up(path);
  const std::string found = real(path);
  // If the path does not exist, one of its components may be a link to a missing file.
  const bool linked =
      found.empty() ? is_link(place.path.substr(0, place.known)) : found != place.path;
  if (linked || place.path != path) return add_linked(path);
  if (homes_.of_gateway_are_within(path)) return {};
  all_.insert(path);
  return found;
}

std::string HiddenPaths::add_linked(const std::string &path) {
  const PathWalk walk = walk_path(path);
  const auto add_one = [&](const std::string &place) {
    if (homes_.of_gateway_are_within(place)) return;
    all_.insert(place);
    if (place != path) names_.emplace_back(place, path);
  };
  for (const PathWalk::Link &link : walk.links) {
    link.last ? add_one(link.at) : add_target(link.at);
    links_.emplace_back(link.at, walk.end);
  }
  // A server may have created the link. Hiding a system folder would prevent all servers from
  // starting.
  const bool usable = !homes_.of_gateway_are_within(walk.end) &&
                      !(is_closed(walk.end) && is_folder(walk.end) && !walk.links.empty());
  if (!usable) return {};
  add_one(walk.end);
  return walk.exists ? walk.end : std::string();
}

void HiddenPaths::add_target(const std::string &link) {
  if (!homes_.contain(link)) return;
  const std::string folder = real_path(link);
  const bool elsewhere = is_folder(folder) && !homes_.contain(folder);
  if (elsewhere && !homes_.are_within(folder) && !is_closed(folder)) tops_.push_back(folder);
}

bool HiddenPaths::are_reached(const std::string &path, const std::string &end) const {
  const std::string text = homes_.with_real_home(path);
  if (text == end) return false;
  if (homes_.are_within(end)) return true;
  return std::any_of(all_.begin(), all_.end(), [&](const std::string &place) {
    if (!is_within(end, place) || is_within(text, place)) return false;
    return std::none_of(names_.begin(), names_.end(), [&](const auto &name) {
      return name.first == place && is_within(text, name.second);
    });
  });
}

}  // namespace bulkhead
