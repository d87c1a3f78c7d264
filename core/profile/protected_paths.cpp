#include "profile/protected_paths.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "sandbox/path_walk.hpp"
#include "sandbox/paths.hpp"

namespace bulkhead {
namespace {

using Paths = std::vector<std::string>;

bool has(const Paths &paths, const std::string &path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

Paths both(Paths paths, const Paths &more) {
  paths.insert(paths.end(), more.begin(), more.end());
  return paths;
}

// Returns true if `is` has a path for which `protects(known, path)` is false for each path in
// `was`.
template <class Protects>
bool adds(const Paths &was, const Paths &is, Protects protects) {
  return std::any_of(is.begin(), is.end(), [&](const std::string &path) {
    return std::none_of(was.begin(), was.end(),
                        [&](const std::string &known) { return protects(known, path); });
  });
}

bool hides(std::string_view known, std::string_view path) {
  return !known.empty() && is_within(path, known);
}

// Of a folder with programs, only the files directly in it are protected.
bool keeps(std::string_view known, std::string_view path) {
  return path == known || path.substr(0, path.rfind('/')) == known;
}

bool is_missing(const std::string &path) {
  std::error_code error;
  return std::filesystem::symlink_status(path, error).type() ==
         std::filesystem::file_type::not_found;
}

// Adds the paths of `was` that *is lacks to *is, and returns the added paths.
Paths keep(const Paths &was, Paths *is) {
  Paths added;
  std::copy_if(was.begin(), was.end(), std::back_inserter(added),
               [&](const std::string &path) { return !has(*is, path); });
  is->insert(is->end(), added.begin(), added.end());
  return added;
}

constexpr std::string_view link_id = "link";  // in place of a folder's identity

// Returns the device, inode and creation time of a folder, or an empty string if the path is not a
// folder. The time is needed because ext4 gives the inode of a deleted folder to the next new one.
std::string folder_id(const std::string &path) {
  struct statx info{};
  if (::statx(AT_FDCWD, path.c_str(), AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME, &info) !=
          0 ||
      !S_ISDIR(info.stx_mode)) {
    return {};
  }
  const auto text = [](auto number) { return std::to_string(number) + ":"; };
  std::string id = text(info.stx_dev_major) + text(info.stx_dev_minor) + text(info.stx_ino);
  if ((info.stx_mask & STATX_BTIME) != 0) {
    id += text(info.stx_btime.tv_sec) + text(info.stx_btime.tv_nsec);
  }
  return id;
}

// Returns true if `next` has a folder or link that running views do not protect. When a folder is
// deleted, its mount disappears from all views, so a new folder at the same path is not protected.
// The same applies to its parents, which are mount points in views that can change them. Views that
// were made before a symbolic link was created do not keep the link's folder read-only, unless that
// folder is a folder of plugins.
bool has_new_folder(const Profile &now, const Profile &next) {
  const Paths programs = all_programs(now);
  return std::any_of(next.protected_folders.begin(), next.protected_folders.end(),
                     [&](const auto &folder) {
                       const auto was = now.protected_folders.find(folder.first);
                       if (was != now.protected_folders.end()) return was->second != folder.second;
                       return folder.second == link_id && !has(programs, parent_of(folder.first));
                     });
}

}  // namespace

std::vector<std::string> all_own_paths(const Profile &profile) {
  return both(profile.own_paths, profile.fixed_own_paths);
}

std::vector<std::string> all_programs(const Profile &profile) {
  return both(profile.programs, profile.fixed_programs);
}

void add_targets(std::vector<std::string> *paths) {
  for (std::size_t i = 0, named = paths->size(); i < named; ++i) {
    if (!(*paths)[i].starts_with('/')) continue;
    PathWalk walk = walk_path((*paths)[i]);
    if (!walk.given_up && !has(*paths, walk.end)) paths->push_back(std::move(walk.end));
  }
}

void keep_protected(const Profile &now, Profile *next, bool kept_connector) {
  next->fixed_own_paths = now.fixed_own_paths;
  next->fixed_programs = now.fixed_programs;
  add_targets(&next->fixed_own_paths);
  add_targets(&next->fixed_programs);
  next->left_paths = keep(now.own_paths, &next->own_paths);
  const Paths programs = keep(now.programs, &next->programs);
  if (!kept_connector) next->left_paths = both(std::move(next->left_paths), programs);
  note_protected_folders(next);
}

void keep_missing_folders(const Profile &now, Profile *next) {
  next->protected_folders.insert(now.protected_folders.begin(), now.protected_folders.end());
}

bool forget_missing(Profile *profile) {
  const Paths left = std::exchange(profile->left_paths, {});
  const auto gone = [&](const std::string &path) { return has(left, path) && is_missing(path); };
  return std::erase_if(profile->own_paths, gone) + std::erase_if(profile->programs, gone) != 0;
}

void protect_also(const Profile &other, Profile *profile) {
  keep(other.own_paths, &profile->own_paths);
  keep(other.programs, &profile->programs);
  keep(other.fixed_own_paths, &profile->fixed_own_paths);
  keep(other.fixed_programs, &profile->fixed_programs);
  profile->protected_folders = other.protected_folders;
}

void note_protected_folders(Profile *profile) {
  profile->protected_folders.clear();
  const Paths own = all_own_paths(*profile);
  const auto is_hidden = [&](const std::string &folder) {
    return std::any_of(own.begin(), own.end(), [&](const std::string &path) {
      return folder != path && hides(path, folder);
    });
  };
  const auto note = [&](std::string folder) {
    for (; folder != "/"; folder = parent_of(folder)) {
      const std::string id = is_hidden(folder) ? std::string() : folder_id(folder);
      if (!id.empty() && !profile->protected_folders.emplace(folder, id).second) break;
    }
  };
  for (const std::string &path : both(own, all_programs(*profile))) {
    if (!path.starts_with('/')) continue;
    const PathWalk walk = walk_path(path);
    for (const PathWalk::Link &link : walk.links) {
      if (!is_hidden(link.at)) profile->protected_folders.emplace(link.at, link_id);
      note(parent_of(link.at));
    }
    note(walk.end);
  }
}

bool protects_more(const Profile &now, const Profile &next) {
  return adds(all_own_paths(now), all_own_paths(next), hides) ||
         adds(all_programs(now), all_programs(next), keeps) || has_new_folder(now, next);
}

}  // namespace bulkhead
