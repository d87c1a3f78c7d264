// Implements bh.host.spawn/1: starts, kills and reaps sandboxed child processes.
//
// With user, mount and PID namespaces, a server has its own view of the file system
// (child_view.hpp). The first process in its PID namespace runs child_init.c. Killing that process
// kills all its descendants, regardless of the sessions and groups they have created. Landlock is a
// second layer of protection against writes, and a filter rejects system calls that no server
// needs.
//
// Without namespaces, either the start fails or only Landlock protects files, depending on the
// options. Without namespaces or without a sandbox, child_init.c is a child subreaper: it adopts
// all orphaned descendants and kills them after the server has exited.
//
// With a reactor, spawn() waits only for the first steps of a start. The start then continues on a
// separate thread (starters.hpp), and reap() reports later failures. Without a reactor, spawn()
// blocks until the start completes.
//
// Owner: the host. Must be used on the reactor thread, which must live as long as the children.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "base/slots.hpp"
#include "bulkhead/abi/ext/draft/spawn.h"
#include "sandbox/server_groups.hpp"

namespace bulkhead {

class CacheBounds;
struct ChildPlan;
class GrantRecord;
class KnownPlaces;
class Reactor;
class Starters;

struct SpawnOptions {
  std::string home;              // the home directory whose secrets are hidden; empty: $HOME
  std::string state_dir;         // contains the caches in cache/SERVER/KEY; hidden from servers
  std::vector<std::string> own;  // additional files and folders of the gateway, hidden from servers
  // The gateway's executable and plugins, and the folders of plugins. Servers may not change them.
  std::vector<std::string> programs;
  bool require = false;    // reject a start if any part of the sandbox is missing
  bool namespaces = true;  // false: do not use namespaces
  // Makes this process a child subreaper. It can then kill a server's remaining processes if the
  // server has no PID namespace and its first process was killed externally. Only for programs that
  // do not themselves start processes in other sessions.
  bool adopt = false;
  // The control groups for servers. If the confinement of this process prevents it from creating
  // control groups, they must be created before the process is confined and passed here. If null,
  // they are created together with the first confined child.
  std::shared_ptr<ServerGroups> groups;
  // The size limit for each of a server's scratch folders, /tmp and /var/tmp.
  std::uint64_t scratch_bytes = 512u << 20;
  std::chrono::milliseconds cache_settle{5'000}, cache_interval{600'000};  // see CacheBounds
  Reactor *reactor = nullptr;  // must outlive the Spawner; if null, spawn() blocks
  // Called by spawn(), reap() or the event loop after a part has been added to missing().
  std::function<void()> on_missing;
  // Logs one line for the operator. The text never contains credentials. Also called on a private
  // thread; see CacheBounds.
  std::function<void(std::int32_t level, std::string_view text)> log;
};

class Spawner {
 public:
  explicit Spawner(SpawnOptions options);
  ~Spawner();  // kills all remaining children
  Spawner(const Spawner &) = delete;
  Spawner &operator=(const Spawner &) = delete;

  // Replaces SpawnOptions::own and ::programs for later starts.
  void protect(std::vector<std::string> own, std::vector<std::string> programs) {
    options_.own = std::move(own);
    options_.programs = std::move(programs);
  }

  // See bh_host_spawn for a description of these functions.
  bh_status spawn(const bh_spawn &request, bh_child *out, bh_error *error);
  bh_status kill(bh_child_id child, std::int32_t signal);
  bh_status reap(bh_child_id child, bh_child_end *out);

  std::size_t size() const noexcept { return children_.size(); }
  // Returns the parts of a sandbox that are unavailable, as stable identifiers: namespaces,
  // ipc-namespace, uts-namespace, own-proc, landlock-files, landlock-scopes, process-limit and
  // memory-group. process-limit is reported if a server cannot join its control group, or if the
  // gateway runs as root and has no control groups, because no other limit counts root's processes.
  // memory-group is reported only for a server with a memory limit. A part is added when the first
  // child needs it.
  const std::vector<std::string> &missing() const noexcept { return missing_; }

 private:
  struct Launch;  // a start in progress
  struct Child {
    pid_t pid = -1;       // 0: unknown
    OwnedFd pidfd;        // the caller of spawn() has a duplicate
    OwnedFd exit_report;  // receives the server's exit status
    bool namespaces = false;
    std::string group;               // in groups_; empty: none
    std::string bounded_cache;       // the server, if its cache has a limit; otherwise empty
    std::unique_ptr<Launch> launch;  // set during the start
    std::optional<Error> failure;    // set if the start failed
    Child();
    Child(Child &&) noexcept;
    Child &operator=(Child &&) noexcept;
    ~Child();
  };
  using Missing = std::vector<std::string>;

  bh_status start(std::unique_ptr<Launch> &launch, bh_child *out, bh_error *error);
  void fill_plan(Launch &launch);
  bool begin(Launch &launch);
  bool can_start_asynchronously();
  bh_status hand_out(std::unique_ptr<Launch> launch, bool ready, bh_child *out, bh_error *error);
  void settle(Child &child);
  void report_missing_parts(const ChildPlan &plan);
  void on_finished();
  bh_status prepare(Launch &launch, bh_error *error);
  bh_status prepare_sandbox(Launch &launch, bh_error *error);
  bool prepare_landlock(Launch &launch, Error *why);
  void prepare_groups(Launch &launch);
  void choose_folder(Launch &launch);
  bh_status failure(const Launch &launch, bh_error *error) const;
  bool may_retry_without_namespaces(Launch &launch);
  void report_missing(std::string_view what, std::string_view why);
  void report_missing(Launch &launch, std::string_view what, std::string_view why);
  bh_status refuse(const Launch &launch, bh_error *error) const;
  void log(std::int32_t level, std::string_view text) const;
  void end_orphans();
  static void wait_end(int pidfd) noexcept;

  SpawnOptions options_;
  bool namespaces_;
  std::vector<std::string> missing_;
  std::shared_ptr<ServerGroups> groups_;
  OwnedFd init_image_;
  std::unique_ptr<KnownPlaces> places_;
  std::unique_ptr<GrantRecord> record_;
  // Set only with a reactor, that is, in a long-lived process.
  std::unique_ptr<CacheBounds> caches_;
  bool proven_ = false;         // whether a child has completed its namespace steps
  bool record_failed_ = false;  // whether it was logged that the record cannot be written
  bool record_unread_ = false;  // whether it was logged that the record cannot be read
  bool folder_named_ = false;   // whether the start folder warning was logged
  Slots<Child> children_;
  // Must be destroyed before children_: its destructor joins the threads that use the plans.
  std::unique_ptr<Starters> starters_;
  std::uint64_t watch_ = 0;  // the reactor's watch for finished starts
};

}  // namespace bulkhead
