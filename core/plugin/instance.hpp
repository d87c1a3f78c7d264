// One instance of a plugin, and its bh_host. An instance passes once through the states created,
// configured, started, draining (optional), stopped and destroyed. When it is stopped, resources
// that the plugin has not released are logged and removed.
//
// Owned by the host that loaded it (PluginPart).
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

// Stops and destroys the instance. If a pool thread is still running the instance's code, this is
// logged, and the instance and its library remain in memory.
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

// State that is shared by all instances of a host. It must outlive them.
struct HostContext {
  Reactor *reactor = nullptr;
  std::string name, version;
  std::string state_dir;  // contains secrets/<instance> and plugins/<instance>
  std::function<void(std::int32_t level, std::string_view component, std::string_view text)> log;
  std::int32_t log_level = 1;
  HostServices services;
  // Returns the host's table for an extension, or null. Called for extensions that are not
  // available to all plugins (transport, connector ...). The ctx that is passed to the table's
  // functions is the ctx of the instance's bh_host.
  std::function<const void *(class Instance &, std::string_view id)> extra_ext;
  // Returns true if the instance may request signatures (bh.host.sign/1). If this function is
  // empty, no instance may request them.
  std::function<bool(const class Instance &)> signs;
  // Returns the secrets that bh.host.mask/1 masks for the instance, or null if there are none. This
  // function may be empty. It is called on any thread.
  std::function<std::shared_ptr<const SecretPrints>(const class Instance &)> prints;
  // Returns the spawner for the instance's child processes, or null if the instance may not start
  // any. This function may be empty. It is called for each use; its result must not change while
  // child processes exist.
  std::function<Spawner *(const class Instance &)> children;
};

class Instance {
 public:
  static constexpr std::size_t max_log_bytes = 4096;  // longer lines are truncated
  static constexpr std::size_t max_counters = 256;    // limit per instance
  static constexpr std::size_t max_secret_bytes = 65'536;
  static constexpr int max_job_end_ms = 500;  // maximum time that stop() waits for blocking work

  // `id` must match [A-Za-z0-9_.-]{1,64} and must not be "." or "..", because it is used as a
  // folder name. Error messages name the plugin and the instance. `user` is set before any of the
  // plugin's code runs. Unless stated otherwise, all functions must be called on the reactor
  // thread.
  static Result<std::unique_ptr<Instance>> create(std::string id, std::shared_ptr<Library> library,
                                                  HostContext &context, void *user = nullptr);
  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  // These functions must be called in this order, each at most once; drain() may be omitted.
  // Otherwise, the plugin is not called, and the function logs the error and, if it has a return
  // value, returns BH_E_INVALID. A further stop() has no effect and is not logged. If configure()
  // or start() fails, the instance can only be destroyed. configure() first validates the
  // configuration against the plugin's config_schema.
  Result<void> configure(std::string_view config_json);
  Result<void> start();
  void drain(std::uint64_t deadline_ns);  // CLOCK_MONOTONIC
  void stop();
  // Returns BH_OK if the instance is ready, and BH_PENDING while it is starting. A negative status
  // means that the instance has failed; *error is then set to the reason. If the state is neither
  // started nor draining, returns BH_E_INVALID and does not set *error.
  bh_status probe(std::string *error);

  // Returns the plugin's table for an extension, or null.
  template <class T>
  const T *ext(const char *id) const {
    return static_cast<const T *>(table_.get_ext(table_.self, id));
  }
  // Like ext(id), but also returns null if the table is too short to contain the member `last`.
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
  // Returns true if a pool thread was still running the instance's code when stop() returned. The
  // instance then remains in memory, and the code may still call the host.
  bool abandoned() const noexcept { return abandoned_; }
  const std::vector<std::pair<std::string, std::uint64_t>> &counters() const noexcept {
    return counters_;
  }

  // Returns the instance to which a bh_host's ctx belongs.
  static Instance &of(void *ctx) noexcept { return *static_cast<Instance *>(ctx); }
  Reactor &reactor() const noexcept { return *context_->reactor; }
  // Checks a call from the plugin. If `wrong` is set, logs the call and returns BH_E_INVALID.
  // Returns BH_STALE if the instance has been stopped, and BH_OK otherwise. Thread-safe.
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
  bh_plugin table_{};  // complete even if an older plugin lacks functions
  InstanceState state_ = InstanceState::created;
  bool failed_ = false;             // a step has failed, so the instance can only be destroyed
  bool abandoned_ = false;          // pool work was running when stop() returned
  std::atomic<bool> ended_{false};  // stop() has returned, so calls from the plugin are rejected
  std::vector<std::pair<std::string, std::uint64_t>> counters_;
  std::string folder_;                     // for bh.host.store/1; empty until it is created
  std::vector<std::string> socket_files_;  // for bh.host.listen/1; removed on destruction
  DialRules dial_rules_;  // used if this process makes the instance's connections itself
};

}  // namespace bulkhead
