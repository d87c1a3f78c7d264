#include "sandbox/kept_programs.hpp"

#include <set>

#include "sandbox/path_walk.hpp"
#include "sandbox/paths.hpp"

namespace bulkhead {
namespace {

bool is_writable(const ViewStep &step) {
  return step.kind == ViewStep::Kind::bind && step.writable && !step.instead;
}

class Keeper {
 public:
  Keeper(const MountTable &mounts, ViewSteps *steps, WalkBudget *budget)
      : mounts_(mounts), steps_(*steps), budget_(budget) {}

  void keep(const std::string &program) {
    const PathWalk walk = walk_path(program, budget_);
    for (const PathWalk::Link &link : walk.links) keep_everywhere(parent_of(link.at), false);
    if (!walk.exists) return keep_everywhere(parent_of(walk.end), false);
    if (is_folder(walk.end)) return keep_everywhere(walk.end, true);
    const std::string folder = parent_of(walk.end);
    const ViewStep *step = nearest_step(steps_, folder);
    // If the definition grants this very folder, the rest of it stays writable.
    if (step == nullptr || step->path != folder) keep_everywhere(folder, false);
    keep_everywhere(walk.end, false);
  }

  const std::set<std::string> &kept() const noexcept { return kept_; }

 private:
  // Also keeps the path where it is mounted a second time.
  void keep_everywhere(std::string path, bool with_contents) {
    while (!exists(path)) path = parent_of(path);
    keep_at(path, with_contents);
    for (const MountTable::Other &other : mounts_.others(path)) {
      if (with_contents || other.inside == path) keep_at(other.at, with_contents);
    }
  }

  void keep_at(const std::string &path, bool with_contents) {
    const ViewStep *above = nearest_step(steps_, path);
    if (path != "/" && above != nullptr && is_writable(*above)) {
      ViewStep &step = steps_[path] = {};
      step.path = step.source = path;
      step.folder = is_folder(path);
      kept_.insert(path);
    }
    if (!with_contents) return;
    for (auto at = steps_.lower_bound(path); at != steps_.end(); ++at) {
      if (!at->first.starts_with(path)) break;
      if (!is_within(at->first, path) || !is_writable(at->second)) continue;
      // Plugins are loaded from the folder itself (NAME.so) and from folders in it (NAME/NAME.so).
      const std::string above_it = parent_of(at->first);
      const bool loaded = above_it == path || (!at->second.folder && parent_of(above_it) == path);
      if (at->first != path && !loaded) continue;
      at->second.writable = false;
      kept_.insert(at->first);
    }
  }

  const MountTable &mounts_;
  ViewSteps &steps_;
  WalkBudget *const budget_;
  std::set<std::string> kept_;
};

}  // namespace

void keep_programs(const std::vector<std::string> &programs, const MountTable &mounts,
                   ViewSteps *steps, std::vector<std::string> *notes, WalkBudget *budget) {
  Keeper keeper(mounts, steps, budget);
  for (const std::string &program : programs) {
    if (program.starts_with('/')) keeper.keep(program);
  }
  std::string names;
  for (const std::string &path : keeper.kept()) names += (names.empty() ? "" : ", ") + path;
  if (names.empty()) return;
  notes->push_back("it cannot change " + names +
                   ", because the gateway runs its program and plugins from there, or would run "
                   "plugins that are created there; if the server needs to change these "
                   "paths, install the gateway and its plugins in another folder");
}

}  // namespace bulkhead
