#include "builtin-files/walk.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "builtin-files/ignore.hpp"

namespace builtin_files {
namespace {

constexpr std::size_t max_ignore_bytes = 64u << 10;  // bytes read per .gitignore file
constexpr std::size_t max_visited = 200'000;
constexpr std::size_t max_held = 200'000;  // maximum number of entries in all open folders
constexpr std::string_view too_many = "some folders have too many files";
constexpr std::size_t entries_between_looks = 64;  // entries read between calls to must_stop()

struct WalkEntry {
  std::string name;
  bool is_folder;
};

// An open folder and its entries. `next` is the index of the first entry that has not been visited.
struct Level {
  OpenDirectory dir;
  std::string path;  // with a trailing "/", or empty
  std::vector<WalkEntry> entries;
  std::size_t next = 0;
  bool truncated = false;  // the folder has more entries
  IgnoreRules ignore{};    // rules of this folder's .gitignore file
};

IgnoreRules ignore_rules(int folder) {
  const Fd fd = Workspace::open_below(folder, ".gitignore", O_RDONLY | O_NOFOLLOW);
  std::string text(fd.valid() ? max_ignore_bytes : 0, '\0');
  const ssize_t n = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : 0;
  return IgnoreRules::parse(
      std::string_view(text).substr(0, n < 0 ? 0 : static_cast<std::size_t>(n)));
}

// If several folders have a matching rule, the rule of the innermost folder applies.
bool is_ignored(const std::vector<Level> &levels, const std::string &path, bool is_folder) {
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    if (level->ignore.empty()) continue;
    const auto verdict =
        level->ignore.judge(std::string_view(path).substr(level->path.size()), is_folder);
    if (verdict != IgnoreRules::Verdict::none) return verdict == IgnoreRules::Verdict::ignored;
  }
  return false;
}

bool is_folder(int dir, const dirent &entry, bool *is_link) {
  unsigned char type = entry.d_type;
  if (type == DT_UNKNOWN) {
    struct stat s{};
    if (::fstatat(dir, entry.d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) return false;
    type = S_ISDIR(s.st_mode) ? DT_DIR : S_ISLNK(s.st_mode) ? DT_LNK : DT_REG;
  }
  *is_link = type == DT_LNK;
  return type == DT_DIR;
}

// Opens a folder for the walk and reads at most `room` entries. If the call must stop, the list is
// incomplete. Returns false if the folder is unreadable.
bool open_level(const Call &call, Fd folder, std::string path, std::size_t room, Level *out) {
  out->dir.reset(::fdopendir(folder.get()));
  if (!out->dir) return false;
  folder.release();
  out->path = std::move(path);
  const int fd = ::dirfd(out->dir.get());
  std::size_t seen = 0;
  while (const dirent *entry = ::readdir(out->dir.get())) {
    if (++seen % entries_between_looks == 0 && call.must_stop()) break;
    const std::string_view name = entry->d_name;
    bool is_link = false;
    if (name == "." || name == ".." || is_temporary_name(name)) continue;
    if (out->entries.size() >= room) {
      out->truncated = true;
      break;
    }
    const bool folder_entry = is_folder(fd, *entry, &is_link);
    if (!is_link) out->entries.push_back({std::string(name), folder_entry});
  }
  std::sort(out->entries.begin(), out->entries.end(),
            [](const WalkEntry &a, const WalkEntry &b) { return a.name < b.name; });
  return true;
}

}  // namespace

std::string walk(const Call &call, Fd folder, const std::string &path,
                 const std::function<bool(const Found &)> &on_entry, const WalkOptions &options) {
  std::vector<Level> levels(1);
  std::size_t visited = 0;
  std::string incomplete;
  const std::string prefix =
      path == "." || path.empty() ? "" : path + (path.ends_with('/') ? "" : "/");
  if (!open_level(call, std::move(folder), prefix, max_held, &levels[0])) {
    return "the folder is not readable";
  }
  if (options.gitignore) levels[0].ignore = ignore_rules(::dirfd(levels[0].dir.get()));
  if (levels[0].truncated) incomplete = too_many;
  std::size_t held = levels[0].entries.size();
  while (!levels.empty()) {
    Level &level = levels.back();
    if (level.next == level.entries.size()) {
      held -= level.entries.size();
      levels.pop_back();
      continue;
    }
    if (call.must_stop()) return std::string(call.stop_reason());
    call.report(static_cast<double>(visited), 0);
    if (++visited > max_visited) return "more than 200,000 files were visited";
    const WalkEntry &entry = level.entries[level.next++];
    const int fd = ::dirfd(level.dir.get());
    const std::string entry_path = level.path + entry.name;
    if (options.gitignore && is_ignored(levels, entry_path, entry.is_folder)) continue;
    const Found found{entry_path, fd, entry.name.c_str(), entry.is_folder, levels.size() - 1};
    if (!on_entry(found)) return incomplete;
    if (!entry.is_folder || entry.name == ".git") continue;
    if (levels.size() == options.levels) {
      incomplete = "folders at level " + std::to_string(options.levels) + " were not entered";
      continue;
    }
    Level below;
    Fd child = Workspace::open_below(fd, entry.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!child.valid() ||
        !open_level(call, std::move(child), entry_path + "/", max_held - held, &below)) {
      incomplete = "some folders are not readable";
      continue;
    }
    if (options.gitignore) below.ignore = ignore_rules(::dirfd(below.dir.get()));
    held += below.entries.size();
    if (below.truncated) incomplete = too_many;
    levels.push_back(std::move(below));
  }
  return incomplete;
}

}  // namespace builtin_files
