// The snapshots of one workspace, in numbered slots and within limits.
//
// The store's folder contains "objects" (objects.hpp), one file "cp-SLOT" per snapshot
// (manifest.hpp), and "lock". A snapshot exists while its file exists under that name. Unused
// objects are removed afterwards or, if the process is killed in between, before the next change.
//
// May be used on any thread, by one thread at a time; each call locks the store.
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

// A value, or an error message.
template <class T>
struct Outcome {
  T value{};
  std::string problem;
  bool good() const noexcept { return problem.empty(); }
};

class SnapshotStore {
 public:
  SnapshotStore(const Workspace &workspace, const SnapshotConfig &config);

  // Opens or creates the folder of this workspace in config.path. Returns false and sets *problem
  // on failure.
  bool open(std::string *problem);

  const Workspace &workspace() const noexcept { return workspace_; }
  bool before_changes() const noexcept { return config_.before_changes; }
  std::uint64_t max_file_bytes() const noexcept { return config_.max_file_bytes; }

  // Returns the heads of all snapshots, newest first. Damaged snapshots are skipped.
  std::vector<Head> heads() const;
  std::optional<Manifest> load(unsigned slot) const;

  // Takes a manual snapshot. Fails if no slot is free.
  Outcome<Head> create(const Call &call, const std::string &name);
  // Takes an automatic snapshot. If ten automatic snapshots exist, the oldest is replaced. If
  // nothing has changed since the newest snapshot, takes no snapshot and returns slot == all_slots.
  Outcome<Head> create_automatic(const Call &call);
  // Deletes a manual snapshot. Returns the error, or an empty string on success.
  std::string remove(const Call &call, unsigned slot);

  struct Compacted {
    Head head;
    std::vector<unsigned> sources;
  };
  // Merges at least two snapshots into one manual snapshot, which contains the newest version of
  // each path. The same step removes the sources.
  Outcome<Compacted> compact(const Call &call, std::vector<unsigned> slots,
                             const std::string &name);

  // Returns the content store; the caller must hold lock().
  Objects &objects() noexcept { return objects_; }

  // Waits until other calls release the lock or call.must_stop() returns true. Returns no lock and
  // sets *problem on failure.
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
  std::mutex mutex_;
  Fd folder_;
  Fd lock_;
  Objects objects_;
  bool acquired_ = false;            // leftovers have been removed, and `used_` is valid
  std::uint64_t used_ = 0;           // bytes of objects and manifests
  const Entries *making_ = nullptr;  // objects of these entries must not be removed
};

// Returns the name of a slot, such as "cp-12". checkpoint_slot() returns nullopt for other names.
std::string checkpoint_name(unsigned slot);
std::optional<unsigned> checkpoint_slot(std::string_view name);

}  // namespace builtin_files
