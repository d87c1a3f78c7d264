#include "sandbox/hidden_paths.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "sandbox/hidden_places.hpp"
#include "sandbox/path_walk.hpp"
#include "sandbox/system_folders.hpp"

namespace bulkhead {
namespace {

// Returns true if the path is a link or cannot be looked up.
bool is_link_or_closed(const std::string &path) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0) return S_ISLNK(info.st_mode);
  return !means_missing(errno);
}

bool may_be_read_by_all(const std::string &path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) != 0 || (info.st_mode & S_IROTH) != 0;
}

}  // namespace

std::string HiddenPaths::real(const std::string &path) const {
  return places_ == nullptr ? real_path(path, budget_) : places_->real(path, budget_);
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
  // The look-ups below are quadratic in the number of components. A server can cause long paths.
  constexpr std::ptrdiff_t many = 12;
  if (std::count(path.begin(), path.end(), '/') > many) return add_linked(path);
  const Place place = look_up(path);
  const std::string found = real(path);
  // If the path does not exist, one of its components may be a link to a missing file, or in a
  // folder that may not be searched.
  const bool linked = (!found.empty() && found != place.path) ||
                      is_link_or_closed(place.path.substr(0, place.known));
  if (linked || place.path != path) return add_linked(path);
  if (homes_.of_gateway_are_within(path)) return {};
  all_.insert(path);
  return found;
}

std::string HiddenPaths::add_linked(const std::string &path) {
  walks_.push_back(walk_path(path, budget_));
  const PathWalk &walk = walks_.back();
  const auto add_one = [&](const std::string &place) {
    if (homes_.of_gateway_are_within(place)) return;
    all_.insert(place);
    if (place != path) names_.emplace_back(place, path);
  };
  for (const PathWalk::Link &link : walk.links) {
    link.last ? add_one(link.at) : add_target(link.at);
  }
  if (walk.given_up) return {};
  // A server may have created the link.
  if (!walk.links.empty() && is_required(walk.end)) return {};
  add_one(walk.end);
  if (walk.closed.empty()) return walk.exists ? walk.end : std::string();
  // The path may exist, and a server may make the folder searchable again.
  const bool usable = walk.links.empty() || !is_required(walk.closed);
  if (!usable || homes_.of_gateway_are_within(walk.closed)) return {};
  add_one(walk.closed);
  return walk.closed;
}

void HiddenPaths::require(const std::string &path, const LinkRule &rule) {
  const PathWalk walk = walk_path(path);
  required_.push_back(path);
  if (walk.given_up) return;
  if (rule.rejected(walk) == nullptr) required_.push_back(walk.end);
}

bool HiddenPaths::is_required(const std::string &path) const {
  if (homes_.of_gateway_are_within(path) || (is_closed(path) && is_folder(path))) return true;
  if (holds_any(path, required_)) return true;
  const bool system = in_closed_root(path) || is_within(path, "/nix") || is_within(path, "/gnu");
  return system && may_be_read_by_all(path);
}

void HiddenPaths::add_target(const std::string &link) {
  if (!homes_.contain(link)) return;
  const std::string folder = real_path(link, budget_);
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

bool HiddenPaths::is_shared(const std::string &path) const {
  const auto names = shared_at_home();
  return std::any_of(homes_.all().begin(), homes_.all().end(), [&](const std::string &home) {
    return std::any_of(names.begin(), names.end(),
                       [&](std::string_view name) { return path == joined(home, name); });
  });
}

std::set<std::string> HiddenPaths::all_and_shared(const std::vector<std::string> &homes) const {
  std::set<std::string> out = all_;
  for (const std::string &home : homes) {
    for (const std::string_view name : shared_at_home()) {
      const std::string place = joined(home, name);
      out.insert(place);
      if (std::string found = real(place); !found.empty()) out.insert(std::move(found));
    }
  }
  return out;
}

}  // namespace bulkhead
