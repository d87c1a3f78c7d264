// Stores the snapshots of one workspace in numbered slots and enforces the size limits.
//
// The store's folder contains the file contents ("objects", see objects.hpp), one manifest per
// snapshot ("cp-SLOT", see manifest.hpp), and a lock file ("lock"). A snapshot exists as long as
// its manifest exists. When a snapshot is deleted, its manifest is removed before its unused
// objects. If the process is killed in between, the next change removes these objects.
//
// The caller must hold lock() while it uses the snapshots. Any thread may hold it.
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

// Either a value or an error message.
template <class T>
struct Outcome {
  T value{};
  std::string problem;
  bool good() const noexcept { return problem.empty(); }
};

class SnapshotStore {
 public:
  SnapshotStore(const Workspace &workspace, const SnapshotConfig &config,
                Links links = Links::follow);

  // Opens this workspace's folder in config.path, and creates it if necessary. Returns false and
  // sets *problem on failure.
  bool open(std::string *problem);

  const Workspace &workspace() const noexcept { return workspace_; }
  bool before_changes() const noexcept { return config_.before_changes; }
  std::uint64_t max_file_bytes() const noexcept { return config_.max_file_bytes; }

  // Returns the heads of all snapshots, newest first. Omits snapshots whose head is damaged, and
  // sources of compacted snapshots.
  std::vector<Head> heads() const;
  // Returns nullopt if the slot is empty or the snapshot is damaged.
  std::optional<Manifest> load(unsigned slot) const;

  // Takes a manual snapshot. Fails if no manual slot is free.
  Outcome<Head> create(const Call &call, const std::string &name);
  // Takes an automatic snapshot, which replaces the oldest one if all automatic slots are in use.
  // If the workspace has not changed since the newest snapshot, takes no snapshot and returns a
  // head with slot == all_slots.
  Outcome<Head> create_automatic(const Call &call);
  // Deletes a manual snapshot. Returns the error, or an empty string on success.
  std::string remove(const Call &call, unsigned slot);

  struct Compacted {
    Head head;
    std::vector<unsigned> sources;
  };
  // Merges at least two snapshots into one manual snapshot with the newest version of each path.
  // The sources are removed in the same atomic step.
  Outcome<Compacted> compact(const Call &call, std::vector<unsigned> slots,
                             const std::string &name);

  // Returns the store of file contents. The caller must hold lock().
  Objects &objects() noexcept { return objects_; }

  // Waits for exclusive access. If call.must_stop() becomes true first, returns an empty lock and
  // sets *problem.
  std::unique_lock<std::mutex> lock(const Call &call, std::string *problem);

 private:
  bool acquire(std::string *problem);
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
  const Links links_;  // in config_.path
  std::mutex mutex_;
  Fd folder_;
  Fd lock_;
  Objects objects_;
  bool acquired_ = false;            // set by acquire(); cleared if unused objects may remain
  std::uint64_t used_ = 0;           // total size of objects and manifests in bytes
  const Entries *making_ = nullptr;  // entries whose objects must not be removed
};

// Returns the name of a slot, such as "cp-12".
std::string checkpoint_name(unsigned slot);
std::optional<unsigned> checkpoint_slot(std::string_view name);

}  // namespace builtin_files
