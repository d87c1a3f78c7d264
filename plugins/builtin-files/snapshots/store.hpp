// The snapshots of one workspace: slots, which one may take, and what the store may hold.
//
// In the store's folder: "objects" (objects.hpp), one file "cp-SLOT" for each snapshot
// (manifest.hpp), "lock". A snapshot is there from the rename that gives its file that name, and
// gone from the moment that its file is; contents that nobody needs any more are removed after
// that, or, if the process is killed in between, before the next change.
//
// Thread: any, one at a time; each call holds the store for itself.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "builtin-files/config.hpp"
#include "builtin-files/replacement.hpp"
#include "builtin-files/snapshots/manifest.hpp"
#include "builtin-files/snapshots/objects.hpp"
#include "builtin-files/snapshots/scan.hpp"

namespace builtin_files {

inline constexpr unsigned auto_slots = 10;    // 0 to 9
inline constexpr unsigned manual_slots = 12;  // 10 to 21
inline constexpr unsigned all_slots = auto_slots + manual_slots;

// A value, or a sentence that says why there is none.
template <class T>
struct Outcome {
  T value{};
  std::string problem;
  bool good() const noexcept { return problem.empty(); }
};

class SnapshotStore {
 public:
  SnapshotStore(const Workspace &workspace, const SnapshotConfig &config);

  // Finds or makes the folder of this workspace in config.path. False: *problem.
  bool open(std::string *problem);

  const Workspace &workspace() const noexcept { return workspace_; }
  bool before_changes() const noexcept { return config_.before_changes; }
  std::uint64_t max_file_bytes() const noexcept { return config_.max_file_bytes; }

  // Newest first. Damaged ones are left out.
  std::vector<Head> heads() const;
  std::optional<Manifest> load(unsigned slot) const;

  // A manual one; refused when no slot is free.
  Outcome<Head> create(const Call &call, const std::string &name);
  // An automatic one, in the place of the oldest when there are ten. None (slot == all_slots) when
  // nothing has changed since the newest snapshot.
  Outcome<Head> create_automatic(const Call &call);
  // A manual one goes. Empty, or why not.
  std::string remove(const Call &call, unsigned slot);

  struct Compacted {
    Head head;
    std::vector<unsigned> sources;
  };
  // One manual snapshot out of several (at least two): of each path what the newest has. The
  // sources go in the same step.
  Outcome<Compacted> compact(const Call &call, std::vector<unsigned> slots,
                             const std::string &name);

  // Contents, for who restores or compares. Held by the caller of lock().
  Objects &objects() noexcept { return objects_; }

  // Waits for other calls until call.must_stop(). No lock: *problem.
  std::unique_lock<std::mutex> lock(const Call &call, std::string *problem);

 private:
  bool take_over(std::string *problem);
  Outcome<Manifest> take(const Call &call);
  std::string add_contents(const Call &call, Manifest *manifest);
  std::string add_content(const Call &call, Entry *entry);
  bool make_room(std::uint64_t bytes);
  std::string commit(const Manifest &manifest, unsigned slot, Over over);
  void forget(unsigned slot);
  void collect(const Entries &candidates);
  std::optional<unsigned> free_slot(unsigned first, unsigned behind) const;

  const Workspace &workspace_;
  const SnapshotConfig config_;
  std::mutex mutex_;
  Fd folder_;
  Fd lock_;
  Objects objects_;
  bool taken_over_ = false;          // swept, `used_` is right
  std::uint64_t used_ = 0;           // bytes of contents and manifests
  const Entries *making_ = nullptr;  // contents of these are needed, whoever goes
};

// "cp-12"; back: nullopt if it is no such name.
std::string checkpoint_name(unsigned slot);
std::optional<unsigned> checkpoint_slot(std::string_view name);

}  // namespace builtin_files
