// One plugin instance and the bh_host it sees.
//
// Owner: the Host. An instance walks created -> configured -> started -> draining -> stopped ->
// destroyed; each step happens once. stop() names what the plugin failed to release.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"
#include "plugin/loader.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead {

enum class InstanceState : std::uint8_t {
  created, configured, started, draining, stopped, destroyed
};
std::string_view to_string(InstanceState state) noexcept;

// What all instances of a host share.
struct HostContext {
  Reactor *reactor = nullptr;
  std::string name, version;
  std::string state_dir;  // secrets/<instance>, plugins/<instance>
  std::function<void(std::int32_t level, std::string_view component, std::string_view text)> log;
  std::int32_t log_level = 1;
  // Host extensions beyond the common services (transport, connector ... tables), by id and
  // instance; returns the table or null. The table's first argument is the instance's ctx.
  std::function<const void *(class Instance &, std::string_view id)> extra_ext;
};

class Instance {
 public:
  static Result<std::unique_ptr<Instance>> create(std::string id, std::shared_ptr<Library> library,
                                                  HostContext &context);
  ~Instance();
  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  Result<void> configure(std::string_view config_json);
  Result<void> start();
  void drain(std::uint64_t deadline_ns);
  void stop();

  template <class T>
  const T *ext(const char *id) const {
    return static_cast<const T *>(plugin_->get_ext(plugin_->self, id));
  }
  void *self() const noexcept { return plugin_->self; }
  const std::string &id() const noexcept { return id_; }
  const Library &library() const noexcept { return *library_; }
  InstanceState state() const noexcept { return state_; }
  const std::vector<std::pair<std::string, std::uint64_t>> &counters() const noexcept {
    return counters_;
  }

  // The instance behind a bh_host.ctx, and a slot for the part of core that owns it.
  static Instance &of(void *ctx) noexcept { return *static_cast<Instance *>(ctx); }
  void *user = nullptr;

 private:
  friend struct HostFunctions;
  Instance() = default;
  std::string id_;
  std::shared_ptr<Library> library_;
  HostContext *context_ = nullptr;
  bh_host host_{};
  const bh_plugin *plugin_ = nullptr;
  InstanceState state_ = InstanceState::created;
  std::vector<std::pair<std::string, std::uint64_t>> counters_;
  std::string folder_;
};

}  // namespace bulkhead
