#include "builtin-files/snapshots/scan.hpp"

#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/text.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>

namespace builtin_files {
namespace {

constexpr int max_scan_levels = 128;
// Number of names that are read between two calls to must_stop().
constexpr std::size_t names_between_looks = 1024;
// File systems update timestamps only every few milliseconds. Two changes within this period can
// have the same timestamp.
constexpr std::int64_t settling_ns = 50'000'000;

std::string link_target(int folder, const char *name) {
  char target[PATH_MAX];
  const ssize_t n = ::readlinkat(folder, name, target, sizeof target);
  return n < 0 ? std::string() : std::string(target, static_cast<std::size_t>(n));
}

// Returns false for entry types that snapshots do not include.
bool fill(int folder, const char *name, const struct stat &s, std::int64_t started, Entry *out) {
  if (S_ISREG(s.st_mode)) {
    out->kind = Kind::file;
  } else if (S_ISDIR(s.st_mode)) {
    out->kind = Kind::folder;
  } else if (S_ISLNK(s.st_mode)) {
    out->kind = Kind::link;
    out->target = link_target(folder, name);
  } else {
    return false;
  }
  out->mode = s.st_mode & 07777;
  out->uid = s.st_uid;
  out->gid = s.st_gid;
  out->signature = signature_of(s);
  out->settled = out->signature.changed_ns + settling_ns < started;
  return true;
}

class Scanner {
 public:
  Scanner(const Call &call, Scan *out)
      : call_(call), out_(out), started_(static_cast<std::int64_t>(bh::unix_ns())) {}

  // Scans one folder recursively. `path` is the folder's path with a trailing "/", or empty for the
  // workspace itself.
  void folder(Fd fd, const std::string &path, int level) {
    const OpenDirectory dir(::fdopendir(fd.get()));
    if (!dir) return fail("cannot read a folder: " + bh::error_name(errno));
    const int here = fd.release();
    for (const std::string &name : names_of(call_, dir.get())) {
      if (!out_->problem.empty()) return;
      entry(here, name, path, level);
    }
  }

 private:
  // If the call must stop, the returned list is incomplete.
  static std::vector<std::string> names_of(const Call &call, DIR *dir) {
    std::vector<std::string> names;
    while (const dirent *e = ::readdir(dir)) {
      if (names.size() % names_between_looks == names_between_looks - 1 && call.must_stop()) break;
      const std::string_view name = e->d_name;
      if (name == "." || name == ".." || is_temporary_name(name)) continue;
      if (names.size() > max_scanned) break;  // entry() reports this
      names.emplace_back(name);
    }
    std::sort(names.begin(), names.end(),
              [](const std::string &a, const std::string &b) { return path_less(a, b); });
    return names;
  }

  void entry(int folder_fd, const std::string &name, const std::string &path, int level) {
    if (call_.must_stop()) return fail("the call was cancelled or timed out");
    call_.report(static_cast<double>(out_->entries.size()), 0);
    if (out_->entries.size() == max_scanned) {
      return fail("the workspace has more than 1,000,000 entries, the limit for snapshots");
    }
    struct stat s{};
    // Skips entries that were removed after the folder was read.
    if (::fstatat(folder_fd, name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return;
    Entry e;
    if (!fill(folder_fd, name.c_str(), s, started_, &e)) {
      ++out_->skipped;
      return;
    }
    e.path = path + name;
    const bool is_folder = e.kind == Kind::folder;
    out_->entries.push_back(std::move(e));
    if (!is_folder) return;
    if (level == max_scan_levels) return fail("folders are more than 128 levels deep");
    Fd below = Workspace::open_below(folder_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (below.valid()) return folder(std::move(below), path + name + "/", level + 1);
    if (errno != ENOENT) ++out_->skipped;
  }

  void fail(std::string problem) { out_->problem = std::move(problem); }

  const Call &call_;
  Scan *out_;
  const std::int64_t started_;
};

}  // namespace

Scan scan(const Call &call, const Workspace &workspace, const std::string &path) {
  Scan out;
  Opened opened = workspace.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!opened.fd.valid()) {
    out.problem = std::move(opened.problem);
    return out;
  }
  const bool whole = path == ".";
  if (!whole) out = scan_one(workspace, path);
  if (out.problem.empty()) {
    call.next_phase();
    Scanner(call, &out).folder(std::move(opened.fd), whole ? "" : path + "/", 0);
  }
  return out;
}

Scan scan_one(const Workspace &workspace, const std::string &path) {
  Scan out;
  const Place place = workspace.place(path, false, Links::refuse);
  struct stat s{};
  // A missing parent folder is not an error. It means that the path does not exist.
  if (!place.folder.valid()) return out;
  if (::fstatat(place.folder.get(), place.name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return out;
  Entry e;
  if (!fill(place.folder.get(), place.name.c_str(), s, static_cast<std::int64_t>(bh::unix_ns()),
            &e)) {
    out.problem = shown(path) + " is not a file, folder or link";
    return out;
  }
  e.path = path;
  out.entries.push_back(std::move(e));
  return out;
}

}  // namespace builtin_files
