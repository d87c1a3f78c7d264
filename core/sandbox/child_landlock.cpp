#include "sandbox/child_landlock.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace bulkhead {
namespace {

constexpr std::uint64_t device_nodes = ll_make_char | ll_make_block;
constexpr std::size_t most_rules = 8192;

class Rules {
 public:
  void add(const std::string &path, std::uint64_t rights) {
    if (files_.size() == most_rules) return;
    // The paths contain no links. If a server replaces a component by a link now, this fails.
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
    how.resolve = RESOLVE_NO_SYMLINKS;
    OwnedFd file(
        static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
    if (!file) return;
    // fstat() fails if the file system does not respond. Then only the rules for the parent folders
    // apply to the path.
    struct stat info{};
    if (::fstat(file.get(), &info) != 0) return;
    rules.paths.push_back({file.get(), rights});
    files_.push_back(std::move(file));
  }

  LandlockRules rules;

 private:
  std::vector<OwnedFd> files_;
};

bool is_cover(const ViewStep &step) {
  return step.kind == ViewStep::Kind::empty_folder || step.kind == ViewStep::Kind::empty_file ||
         step.kind == ViewStep::Kind::devices || step.kind == ViewStep::Kind::mirror;
}

bool is_bind(const ViewStep &step) {
  return step.kind == ViewStep::Kind::bind || step.kind == ViewStep::Kind::entry;
}

// Returns true if the step hides its path, or if it makes the path read-only and `rights` include
// writing.
bool reduces_rights(const ViewStep &step, std::uint64_t rights) {
  const bool read_only = is_bind(step) && !step.writable;
  return is_cover(step) || (read_only && (rights & ll_write) != 0);
}

// Adds rules for `folder` and everything in it, except paths that other steps hide or restrict.
// `top` is the path of the step for which the rules are added.
void add_around(const std::string &top, const std::string &folder, std::uint64_t rights,
                const ChildView &view, Rules *rules) {
  bool whole = true;
  for (const ViewStep &step : view.steps) {
    if (step.path == top || !reduces_rights(step, rights)) continue;
    if (step.path == folder) return;
    if (is_within(step.path, folder)) whole = false;
  }
  for (const std::string &place : view.in_scratch) {
    if (place == top) continue;
    if (place == folder) return;
    if (is_within(place, folder)) whole = false;
  }
  if (whole) return rules->add(folder, rights);
  std::error_code error;
  // Not a range-for, which throws if an entry cannot be read.
  for (auto at = std::filesystem::directory_iterator(folder, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    std::error_code gone;
    if (!at->is_symlink(gone)) add_around(top, at->path().string(), rights, view, rules);
  }
}

// Returns true if a rule for the entire folder would also grant access to a path in it that another
// step hides or restricts.
bool holds_others(const ChildView &view, std::string_view folder) {
  const auto is_inside = [&](const std::string &place) { return is_within(place, folder); };
  return std::any_of(view.in_scratch.begin(), view.in_scratch.end(), is_inside) ||
         std::any_of(view.steps.begin(), view.steps.end(), [&](const ViewStep &step) {
           return reduces_rights(step, ll_read_write) && step.path != folder &&
                  is_inside(step.path);
         });
}

void add_devices(Rules *rules) {
  for (const char *node : {"null", "zero", "full", "random", "urandom", "tty", "ptmx"}) {
    rules->add(std::string("/dev/") + node, ll_read_file | ll_write_file);
  }
  for (const char *folder : {"/dev/pts", "/dev/shm"}) rules->add(folder, ll_read_write);
}

}  // namespace

Result<OwnedFd> child_landlock(const ChildView &view, bool mounts, const std::string &cache) {
  Rules rules;
  rules.rules.fs = ll_write | device_nodes;
  // Landlock's network rules filter only ports, so they are not used. A server without network
  // access has an empty network namespace instead.
  rules.rules.net = 0;
  if (!mounts) rules.rules.fs |= ll_read_execute;
  for (const ViewStep &step : view.steps) {
    if (!is_bind(step)) continue;
    if (mounts) {
      if (step.writable) rules.add(step.source, ll_write);
    } else if (step.path == step.source) {
      const std::uint64_t rights = ll_read_execute | (step.writable ? ll_write : 0);
      add_around(step.path, step.path, rights, view, &rules);
    }
  }
  if (!mounts) {
    add_around("/", "/", ll_read_execute, view, &rules);
    add_devices(&rules);
    if (!holds_others(view, "/tmp")) rules.add("/tmp", ll_read_write | ll_execute);
    if (!cache.empty()) rules.add(cache, ll_read_write | ll_execute);
  }
  return landlock_ruleset(rules.rules);
}

}  // namespace bulkhead
