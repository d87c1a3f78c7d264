// One plugin instance and the bh_host it sees.
//
// Owner: the Host. An instance walks created -> configured -> started -> draining -> stopped ->
// destroyed; each step happens once. stop() names what the plugin failed to release.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"
#include "plugin/dial_rules.hpp"
#include "plugin/loader.hpp"
#include "plugin/secret_prints.hpp"
#include "plugin/services.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead {
class Instance;
}

// Deleting an instance stops what still runs, then destroys. One whose work is still on a thread of
// the pool is left in memory whole, with its library, and said so in the log: neither its data nor
// its bh_host may go away under that thread.
template <>
struct std::default_delete<bulkhead::Instance> {
  void operator()(bulkhead::Instance *instance) const;
};

namespace bulkhead {

class Spawner;

enum class InstanceState : std::uint8_t {
  created,
  configured,
  started,
  draining,
  stopped,
  destroyed
};
std::string_view to_string(InstanceState state) noexcept;

// What all instances of a host share. It outlives them.
struct HostContext {
  Reactor *reactor = nullptr;
  std::string name, version;
  std::string state_dir;  // secrets/<instance>, plugins/<instance>
  std::function<void(std::int32_t level, std::string_view component, std::string_view text)> log;
  std::int32_t log_level = 1;
  HostServices services;
  // Host extensions beyond the common services (transport, connector ... tables), by id and
  // instance; returns the table or null. The table's first argument is the instance's ctx.
  std::function<const void *(class Instance &, std::string_view id)> extra_ext;
  // Whether this instance may have statements signed (bh.host.sign/1); empty: it may not.
  std::function<bool(const class Instance &)> signs;
  // What this instance may have masked (bh.host.mask/1); empty, or null: nothing. Any thread.
  std::function<std::shared_ptr<const SecretPrints>(const class Instance &)> prints;
  // What starts this instance's child processes; empty, or null: it may have none. Asked at each
  // use, so it must not change its mind while there are children.
  std::function<Spawner *(const class Instance &)> children;
};

class Instance {
 public:
  static constexpr std::size_t max_log_bytes = 4096;  // of one line; longer is cut
  static constexpr std::size_t max_counters = 256;    // per instance
  static constexpr std::size_t max_secret_bytes = 65'536;
  static constexpr int max_job_end_ms =
      500;  // blocking work that goes on after stop() is waited for

  // `id` is [A-Za-z0-9_.-]{1,64}, not "." or "..": it names folders. Errors name plugin and
  // instance. Thread of everything here: the reactor's.
  // `user` is there before the plugin's code runs.
  static Result<std::unique_ptr<Instance>> create(std::string id, std::shared_ptr<Library> library,
                                                  HostContext &context, void *user = nullptr);
  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  // Each once and in this order; a step out of order is refused (BH_E_INVALID, or a log line where
  // there is no result) without calling the plugin. After a failed configure or start only
  // destroying is left. configure() checks the plugin's config_schema before the plugin is asked.
  Result<void> configure(std::string_view config_json);
  Result<void> start();
  void drain(std::uint64_t deadline_ns);  // CLOCK_MONOTONIC
  void stop();
  // BH_OK: ready; BH_PENDING: still starting; else broken, with the reason in *error.
  bh_status probe(std::string *error);

  // The plugin's table for an extension, or null.
  template <class T>
  const T *ext(const char *id) const {
    return static_cast<const T *>(table_.get_ext(table_.self, id));
  }
  // The same, or null if it ends before its member `last`.
  template <class T, class M>
  const T *ext(const char *id, M T::*last) const {
    const T *table = ext<T>(id);
    if (table == nullptr) return nullptr;
    const auto *end = reinterpret_cast<const char *>(&(table->*last)) + sizeof(M);
    return table->size < static_cast<std::size_t>(end - reinterpret_cast<const char *>(table))
               ? nullptr
               : table;
  }
  void *self() const noexcept { return table_.self; }
  const std::string &id() const noexcept { return id_; }
  const Library &library() const noexcept { return *library_; }
  InstanceState state() const noexcept { return state_; }
  // Work of it in the pool has outlived stop(): it stays in memory, and may still call the host.
  bool abandoned() const noexcept { return abandoned_; }
  const std::vector<std::pair<std::string, std::uint64_t>> &counters() const noexcept {
    return counters_;
  }

  // The instance behind a bh_host.ctx, and a slot for the part of core that owns it.
  static Instance &of(void *ctx) noexcept { return *static_cast<Instance *>(ctx); }
  Reactor &reactor() const noexcept { return *context_->reactor; }
  // BH_OK, or why a call of the plugin is refused: BH_E_INVALID (`wrong`, and logged), or BH_STALE
  // (it was stopped). Any thread.
  bh_status check_call(bool wrong, const char *function) const noexcept {
    if (wrong) return report_misuse(function);
    return ended_.load(std::memory_order_acquire) ? BH_STALE : BH_OK;
  }
  void *user = nullptr;

 private:
  friend struct HostFunctions;
  friend struct std::default_delete<Instance>;
  Instance() = default;
  ~Instance() = default;
  void end() noexcept;
  Result<void> adopt(const bh_plugin *plugin);
  Result<void> step(InstanceState from, InstanceState to, const char *name, bool may);
  void log(std::int32_t level, std::string_view text) const noexcept;
  bh_status report_misuse(const char *function) const noexcept;
  void release_held() noexcept;
  std::string who() const;
  std::string about(std::string_view what, const bh_error &error, bh_status status) const;

  std::string id_;
  std::shared_ptr<Library> library_;
  HostContext *context_ = nullptr;
  bh_host host_{};
  bh_plugin table_{};  // the plugin's, with what an older plugin lacks filled in
  InstanceState state_ = InstanceState::created;
  bool failed_ = false;             // a step was refused: only destroying is left
  bool abandoned_ = false;          // work in the pool outlived stop()
  std::atomic<bool> ended_{false};  // stop() has returned: threads left behind are refused
  std::vector<std::pair<std::string, std::uint64_t>> counters_;
  std::string folder_;                     // of bh.host.store/1, once made
  std::vector<std::string> socket_files_;  // of bh.host.listen/1, removed at the end
  DialRules dial_rules_;                   // likewise, where the instance's own process dials
};

}  // namespace bulkhead
