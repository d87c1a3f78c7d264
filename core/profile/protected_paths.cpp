#include "profile/protected_paths.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

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
  const bool starts = !known.empty() && path.starts_with(known);
  return starts && (path.size() == known.size() || path[known.size()] == '/');
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

void keep(const Paths &was, Paths *is, bool also_missing) {
  for (const std::string &path : was) {
    if (!has(*is, path) && (also_missing || !is_missing(path))) is->push_back(path);
  }
}

// Returns the device, inode and time of creation of a folder, or an empty string if there is none.
// The time is needed because ext4 gives the inode of a deleted folder to the next new one.
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

// A mount disappears from all views when its folder is deleted, so a new folder at the same path is
// not protected. The folders above it are mount points in views that can change them.
bool has_new_folder(const Profile &now, const Profile &next) {
  return std::any_of(now.protected_folders.begin(), now.protected_folders.end(),
                     [&](const auto &folder) {
                       const auto is = next.protected_folders.find(folder.first);
                       return is != next.protected_folders.end() && is->second != folder.second;
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
    std::error_code error;
    std::string real = std::filesystem::weakly_canonical((*paths)[i], error).string();
    if (!error && !has(*paths, real)) paths->push_back(std::move(real));
  }
}

void keep_protected(const Profile &now, Profile *next, bool kept_connector) {
  next->fixed_own_paths = now.fixed_own_paths;
  next->fixed_programs = now.fixed_programs;
  add_targets(&next->fixed_own_paths);
  add_targets(&next->fixed_programs);
  // If the reload fails, the tools plugins of `now` stay in use.
  const bool left_tool = std::any_of(now.tools.begin(), now.tools.end(), [&](const auto &was) {
    return std::none_of(next->tools.begin(), next->tools.end(),
                        [&](const auto &is) { return is.plugin == was.plugin; });
  });
  keep(now.own_paths, &next->own_paths, false);
  keep(now.programs, &next->programs, kept_connector || left_tool);
  note_protected_folders(next);
  // Views do not protect a folder that is deleted now and created again later.
  next->protected_folders.insert(now.protected_folders.begin(), now.protected_folders.end());
}

void protect_also(const Profile &other, Profile *profile) {
  keep(other.own_paths, &profile->own_paths, true);
  keep(other.programs, &profile->programs, true);
  for (const auto &[folder, id] : other.protected_folders) profile->protected_folders[folder] = id;
}

void note_protected_folders(Profile *profile) {
  profile->protected_folders.clear();
  for (const Paths &paths : {all_own_paths(*profile), all_programs(*profile)}) {
    for (std::string path : paths) {
      for (; path.size() > 1; path.erase(path.rfind('/'))) {
        const std::string id = folder_id(path);
        if (!id.empty() && !profile->protected_folders.emplace(path, id).second) break;
        if (path.rfind('/') == path.npos) break;
      }
    }
  }
}

bool protects_more(const Profile &now, const Profile &next) {
  return adds(all_own_paths(now), all_own_paths(next), hides) ||
         adds(all_programs(now), all_programs(next), keeps) || has_new_folder(now, next);
}

}  // namespace bulkhead
