// One plugin instance and its bh_host.
//
// Owner: the Host. An instance passes through the states created -> configured -> started ->
// draining -> stopped -> destroyed once each. stop() logs the resources that the plugin has not
// released.
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

// Stops and destroys the instance. If a pool thread is still running the instance's work, this is
// logged, and the instance and its library stay in memory because the thread may use them.
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

// State that all instances of a host share. Must outlive them.
struct HostContext {
  Reactor *reactor = nullptr;
  std::string name, version;
  std::string state_dir;  // secrets/<instance>, plugins/<instance>
  std::function<void(std::int32_t level, std::string_view component, std::string_view text)> log;
  std::int32_t log_level = 1;
  HostServices services;
  // Returns an instance's host extension table for an id, or null. Used for extensions beyond the
  // common services (transport, connector ...). The first argument of the table's functions is the
  // instance's ctx.
  std::function<const void *(class Instance &, std::string_view id)> extra_ext;
  // Returns true if this instance may have statements signed (bh.host.sign/1). If no function is
  // set, no instance may.
  std::function<bool(const class Instance &)> signs;
  // Returns the secrets to mask for this instance (bh.host.mask/1). If no function is set or it
  // returns null, there are no secrets. Called on any thread.
  std::function<std::shared_ptr<const SecretPrints>(const class Instance &)> prints;
  // Returns the spawner for this instance's child processes. If no function is set or it returns
  // null, the instance may not start any. The function is called at each use, so its result must
  // not change while child processes exist.
  std::function<Spawner *(const class Instance &)> children;
};

class Instance {
 public:
  static constexpr std::size_t max_log_bytes = 4096;  // per line; longer lines are truncated
  static constexpr std::size_t max_counters = 256;    // per instance
  static constexpr std::size_t max_secret_bytes = 65'536;
  static constexpr int max_job_end_ms = 500;  // how long stop() waits for blocking work

  // `id` is [A-Za-z0-9_.-]{1,64} but not "." or "..", because it is used as a folder name. Errors
  // name the plugin and the instance. `user` is set before the plugin's code runs. Unless stated
  // otherwise, all functions run on the reactor thread.
  static Result<std::unique_ptr<Instance>> create(std::string id, std::shared_ptr<Library> library,
                                                  HostContext &context, void *user = nullptr);
  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  // Each function is called once, in this order. A call that is out of order does not reach the
  // plugin: it returns BH_E_INVALID, or logs a line if the function has no result. After configure
  // or start has failed, the instance can only be destroyed. configure() first validates the
  // configuration against the plugin's config_schema.
  Result<void> configure(std::string_view config_json);
  Result<void> start();
  void drain(std::uint64_t deadline_ns);  // CLOCK_MONOTONIC
  void stop();
  // Returns BH_OK if ready, BH_PENDING while starting, or another status if the instance has
  // failed. In that case, *error is the reason.
  bh_status probe(std::string *error);

  // Returns the plugin's table for an extension, or null.
  template <class T>
  const T *ext(const char *id) const {
    return static_cast<const T *>(table_.get_ext(table_.self, id));
  }
  // Returns null if the table ends before its member `last`.
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
  // Returns true if pool work was running when stop() returned. The instance then stays in memory,
  // and the work may call the host.
  bool abandoned() const noexcept { return abandoned_; }
  const std::vector<std::pair<std::string, std::uint64_t>> &counters() const noexcept {
    return counters_;
  }

  // Returns the instance to which a bh_host.ctx belongs.
  static Instance &of(void *ctx) noexcept { return *static_cast<Instance *>(ctx); }
  Reactor &reactor() const noexcept { return *context_->reactor; }
  // Checks a plugin's call. Returns BH_OK, BH_E_INVALID if `wrong` is set (which is logged), or
  // BH_STALE if the instance has been stopped. Thread-safe.
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
  bh_plugin table_{};  // functions that an older plugin lacks are filled in
  InstanceState state_ = InstanceState::created;
  bool failed_ = false;             // a step failed; the instance can only be destroyed
  bool abandoned_ = false;          // pool work outlived stop()
  std::atomic<bool> ended_{false};  // stop() has returned; later calls are rejected
  std::vector<std::pair<std::string, std::uint64_t>> counters_;
  std::string folder_;                     // for bh.host.store/1; empty until created
  std::vector<std::string> socket_files_;  // for bh.host.listen/1; removed at the end
  DialRules dial_rules_;                   // for connections made by the instance's own process
};

}  // namespace bulkhead
