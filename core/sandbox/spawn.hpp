// Child processes in sandboxes: what answers bh.host.spawn/1.
//
// With user, mount and PID namespaces a server gets a view of its own (child_view.hpp), the first
// process of its PID namespace is child_init.c, and killing that kills everything below, whatever
// sessions and groups it made. Landlock refuses writes a second time, a system call filter what no
// server needs. Without namespaces Landlock alone does what it can, or nothing is started, as the
// options say; then, and where no sandbox is wanted, child_init.c is a child subreaper, to which
// everything comes that leaves its parents, and kills that when the server has ended.
//
// With a reactor a child gets ready on a thread of its own (starters.hpp) while the caller goes on:
// what fails after the first steps is told by reap(). Without one spawn() waits.
//
// Owner: the host. Thread: the reactor's, which must live as long as the children.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "base/slots.hpp"
#include "bulkhead/abi/ext/draft/spawn.h"
#include "sandbox/server_groups.hpp"

namespace bulkhead {

class CacheBounds;
struct ChildPlan;
class KnownPlaces;
class Reactor;
class Starters;

struct SpawnOptions {
  std::string home;              // whose secrets are hidden; empty: $HOME
  std::string state_dir;         // caches are made in cache/SERVER of it; hidden from servers
  std::vector<std::string> own;  // further files and folders of the gateway, hidden from servers
  bool require = false;          // refuse to start what cannot be confined in full
  bool namespaces = true;        // false: as if the kernel had none
  // Makes the whole process a child subreaper, and kills what comes to it from servers without a
  // PID namespace whose first process was killed from outside. Only for programs that start no
  // processes in other sessions by themselves.
  bool adopt = false;
  // Made before a confinement that leaves no right to; null: made with the first confined child.
  std::shared_ptr<ServerGroups> groups;
  std::uint64_t scratch_bytes = 512u << 20;                                // of a server's /tmp
  std::chrono::milliseconds cache_settle{5'000}, cache_interval{600'000};  // see CacheBounds
  Reactor *reactor = nullptr;  // outlives the Spawner; null: spawn() waits
  // missing() is longer now. From inside spawn() or reap(), or the loop.
  std::function<void()> on_missing;
  // One line for the operator; never holds a credential.
  std::function<void(std::int32_t level, std::string_view text)> log;
};

class Spawner {
 public:
  explicit Spawner(SpawnOptions options);
  ~Spawner();  // kills what is left
  Spawner(const Spawner &) = delete;
  Spawner &operator=(const Spawner &) = delete;

  // As in bh_host_spawn.
  bh_status spawn(const bh_spawn &request, bh_child *out, bh_error *error);
  bh_status kill(bh_child_id child, std::int32_t signal);
  bh_status reap(bh_child_id child, bh_child_end *out);

  std::size_t size() const noexcept { return children_.size(); }
  // Parts of a sandbox that could not be had, in stable words; grows with the first child that
  // wanted them: namespaces, ipc-namespace, uts-namespace, own-proc, landlock-files,
  // landlock-scopes; for root, whose processes no other limit counts, process-limit; where a server
  // has a bound of memory, memory-group.
  const std::vector<std::string> &missing() const noexcept { return missing_; }

 private:
  struct Launch;  // one start under way
  struct Child {
    pid_t pid = -1;       // 0: not known
    OwnedFd pidfd;        // our own
    OwnedFd exit_report;  // how the server ended
    bool namespaces = false;
    std::string group;               // in groups_; empty: none
    std::string bounded_cache;       // the server whose cache is watched; empty: none
    std::unique_ptr<Launch> launch;  // while it gets ready
    std::optional<Error> failure;    // it never got ready
    Child();
    Child(Child &&) noexcept;
    Child &operator=(Child &&) noexcept;
    ~Child();
  };
  using Missing = std::vector<std::string>;

  bh_status start(std::unique_ptr<Launch> &launch, bh_child *out, bh_error *error);
  void fill_plan(Launch &launch);
  bool begin(Launch &launch);
  bool can_go_on_meanwhile();
  bh_status hand_out(std::unique_ptr<Launch> launch, bool ready, bh_child *out, bh_error *error);
  void settle(Child &child);
  void note_lacks(const ChildPlan &plan);
  void on_finished();
  bh_status prepare(Launch &launch, bh_error *error);
  bh_status prepare_sandbox(Launch &launch, bh_error *error);
  bool prepare_landlock(Launch &launch, Error *why);
  void prepare_groups(Launch &launch);
  void choose_folder(Launch &launch);
  bh_status failure(const Launch &launch, bh_error *error) const;
  bool can_do_without_namespaces(Launch &launch);
  void lacks(std::string_view what, std::string_view why);
  void lacks(Launch &launch, std::string_view what, std::string_view why);
  bh_status refuse(const Launch &launch, bh_error *error) const;
  void log(std::int32_t level, std::string_view text) const;
  void end_orphans();
  static void wait_end(int pidfd) noexcept;

  const SpawnOptions options_;
  bool namespaces_;
  std::vector<std::string> missing_;
  std::shared_ptr<ServerGroups> groups_;
  OwnedFd init_image_;
  std::unique_ptr<KnownPlaces> places_;
  std::unique_ptr<CacheBounds> caches_;  // with a reactor: where the process stays
  bool proven_ = false;                  // a child has been in its namespaces
  bool folder_named_ = false;            // that servers start where the gateway was started
  Slots<Child> children_;
  std::unique_ptr<Starters> starters_;  // before children_ goes, the threads are gone
  std::uint64_t watch_ = 0;             // of what they have finished
};

}  // namespace bulkhead
