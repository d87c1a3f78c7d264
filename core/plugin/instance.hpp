// One plugin instance and its bh_host.
//
// Owner: the Host. An instance passes the states created -> configured -> started -> draining ->
// stopped -> destroyed, each once. stop() logs the resources that the plugin has not released.
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

// Deleting an instance stops it if necessary, then destroys it. If its work still runs on a thread
// of the pool, the whole instance and its library stay in memory, and this is logged: that thread
// may still use its data and its bh_host.
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

// State shared by all instances of a host. It outlives them.
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
  // Returns whether this instance may have statements signed (bh.host.sign/1); empty: no.
  std::function<bool(const class Instance &)> signs;
  // The secrets to mask for this instance (bh.host.mask/1); empty, or null: none. Any thread.
  std::function<std::shared_ptr<const SecretPrints>(const class Instance &)> prints;
  // The spawner for this instance's child processes; empty, or null: not granted. Called at each
  // use, so its result must not change while there are children.
  std::function<Spawner *(const class Instance &)> children;
};

class Instance {
 public:
  static constexpr std::size_t max_log_bytes = 4096;  // per line; longer lines are cut
  static constexpr std::size_t max_counters = 256;    // per instance
  static constexpr std::size_t max_secret_bytes = 65'536;
  static constexpr int max_job_end_ms = 500;  // time that stop() waits for blocking work

  // `id` is [A-Za-z0-9_.-]{1,64}, not "." or "..", since folders have this name. Errors name plugin
  // and instance. Thread of all functions: the reactor's.
  // `user` is set before the plugin's code runs.
  static Result<std::unique_ptr<Instance>> create(std::string id, std::shared_ptr<Library> library,
                                                  HostContext &context, void *user = nullptr);
  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  // Each is called once, in this order. A call out of order is refused without calling the plugin:
  // BH_E_INVALID, or a log line if there is no result. After a failed configure or start the
  // instance can only be destroyed. configure() first checks the configuration against the plugin's
  // config_schema.
  Result<void> configure(std::string_view config_json);
  Result<void> start();
  void drain(std::uint64_t deadline_ns);  // CLOCK_MONOTONIC
  void stop();
  // BH_OK: ready; BH_PENDING: starting; else failed, with the reason in *error.
  bh_status probe(std::string *error);

  // Returns the plugin's table for an extension, or null.
  template <class T>
  const T *ext(const char *id) const {
    return static_cast<const T *>(table_.get_ext(table_.self, id));
  }
  // The same, but null if the table ends before its member `last`.
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
  // True if its work in the pool has outlived stop(): it stays in memory and may still call the
  // host.
  bool abandoned() const noexcept { return abandoned_; }
  const std::vector<std::pair<std::string, std::uint64_t>> &counters() const noexcept {
    return counters_;
  }

  // The instance of a bh_host.ctx, and a pointer for the part of core that owns it.
  static Instance &of(void *ctx) noexcept { return *static_cast<Instance *>(ctx); }
  Reactor &reactor() const noexcept { return *context_->reactor; }
  // Returns BH_OK, or why a call of the plugin is refused: BH_E_INVALID (`wrong`; logged), or
  // BH_STALE (the instance was stopped). Any thread.
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
  bh_plugin table_{};  // the plugin's table; functions that an older plugin lacks are filled in
  InstanceState state_ = InstanceState::created;
  bool failed_ = false;             // a step failed: it can only be destroyed
  bool abandoned_ = false;          // work in the pool outlived stop()
  std::atomic<bool> ended_{false};  // stop() has returned: calls of remaining threads are refused
  std::vector<std::pair<std::string, std::uint64_t>> counters_;
  std::string folder_;                     // of bh.host.store/1, once created
  std::vector<std::string> socket_files_;  // of bh.host.listen/1, removed at the end
  DialRules dial_rules_;                   // the same, if the instance's own process dials
};

}  // namespace bulkhead
