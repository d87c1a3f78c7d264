// A process that has plugins but no router: connectors, tools and services behind the far end of a
// link, or one policy or telemetry plugin behind that of its own kind.
//
// Owner: the compartment. Thread: the reactor's.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bulkhead/abi/ext/draft/http.h"
#include "compartment/slice.hpp"
#include "link/far.hpp"
#include "link/far_policy.hpp"
#include "link/far_telemetry.hpp"
#include "plugin/instance.hpp"
#include "sandbox/spawn.hpp"

namespace bulkhead {

class PluginHost {
 public:
  // `context` has reactor, log and services set.
  // `groups`: for the programs that it may start, see Spawner.
  PluginHost(Slice slice, HostContext context, std::map<std::string, CheckedLibrary> checked,
             std::shared_ptr<ServerGroups> groups = nullptr);
  ~PluginHost();
  PluginHost(const PluginHost &) = delete;
  PluginHost &operator=(const PluginHost &) = delete;

  // Maps and starts the plugins. An error: one that the profile requires cannot.
  Result<void> start();
  // What the sandboxes of its servers lack so far (see Spawner::missing()), and who is told when
  // that grows.
  std::vector<std::string> servers_missing() const;
  std::function<void()> on_servers_missing;
  // See Far::attach().
  void attach(OwnedFd trunk, std::function<void()> on_lost);
  // For lanes that are opened from now on.
  void set_definitions(std::map<std::string, std::string> definitions) {
    slice_.definitions = std::move(definitions);
  }
  // Lanes end in good order, then plugins; turns the loop meanwhile, at most for the profile's
  // shutdown grace.
  void stop();

  // For the host tables.
  struct Part {
    PluginHost *host = nullptr;
    std::uint32_t number = 0;
    std::unique_ptr<Instance> instance;
    bool started = false;
  };
  link::Far &far() noexcept { return *far_; }
  link::FarPolicy *far_policy() noexcept { return far_policy_.get(); }
  link::FarTelemetry *far_telemetry() noexcept { return far_telemetry_.get(); }
  // BH_TELEMETRY_... of the plugin; 0: it is not of that kind, or has failed.
  std::uint32_t telemetry_needs() const;
  Reactor &reactor() noexcept { return *context_.reactor; }
  bool on_loop_thread() const noexcept { return std::this_thread::get_id() == thread_; }
  const bh_http_service *http_service(void **self);

 private:
  Result<void> bring_up(Part &part, const PluginUse &use);
  const char *find_tables(std::uint32_t number);
  void log(std::int32_t level, const std::string &component, const std::string &text) const;

  Slice slice_;
  HostContext context_;
  const std::map<std::string, CheckedLibrary> checked_;
  const std::thread::id thread_ = std::this_thread::get_id();
  bh_limits limits_{};
  std::unique_ptr<Spawner> spawner_;          // of a compartment that may start programs
  std::vector<std::unique_ptr<Part>> parts_;  // by the slice's numbers; services when asked for
  std::vector<link::FarPlugin> plugins_;
  std::unique_ptr<link::Far> far_;
  std::unique_ptr<link::FarPolicy> far_policy_;
  std::unique_ptr<link::FarTelemetry> far_telemetry_;
  bool stopped_ = false;
};

}  // namespace bulkhead
