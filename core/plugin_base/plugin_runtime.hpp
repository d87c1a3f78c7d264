// Loads, starts and stops a host's plugins. Owns the objects that all plugin instances of the host
// share: the services of bh_host, the spawner for child processes, and the fingerprints of secrets.
// The host provides the extension tables (host_tables).
//
// Owned by HostImpl, or by a compartment's PluginHost. All functions must be called on the reactor
// thread, except prints().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/abi/ext/draft/http.h"
#include "plugin/instance.hpp"
#include "profile/profile.hpp"
#include "sandbox/spawn.hpp"

namespace bulkhead {

// A host's state for one plugin instance. Instance::user points to it.
struct PluginPart {
  PluginUse use;
  bool starts_children = false;  // may use bh.host.spawn/1: a connector
  bool keeps_records = false;    // may use bh.host.sign/1 and bh.host.mask/1: a telemetry plugin
  std::string failure;           // why it is not running
  std::unique_ptr<Instance> instance;

  bool runs() const noexcept { return instance != nullptr && failure.empty(); }
  // Returns true if the profile grants this permission to the plugin.
  bool granted(std::string_view grant) const noexcept;
};

struct PluginRuntimeOptions {
  // Plugins that are linked into the program, by name. They take precedence over files.
  std::vector<std::pair<std::string, bh_plugin_entry_fn>> static_plugins;
  // Files that were opened and verified before the process was confined, keyed by the plugin's name
  // in the profile. They take precedence over files in the profile's folders.
  CheckedLibraries checked_plugins;
  HostServices services;
  std::function<void(std::int32_t level, std::string_view component, std::string_view text)> log;
  std::int32_t log_level = 1;
  // Returns the host's table for an extension, or null.
  std::function<const void *(const PluginPart &part, std::string_view id)> find_table;
  // Whether plugins may start child processes. The following members configure the spawner.
  bool spawns = false;
  bool adopt_orphans = false;
  std::shared_ptr<ServerGroups> groups;
  std::function<void()> on_servers_missing;
};

class PluginRuntime {
 public:
  // `profile` must outlive this object. It is read on every load, because a reload may change its
  // folders and limits.
  PluginRuntime(Reactor &reactor, const Profile &profile, PluginRuntimeOptions options);
  PluginRuntime(const PluginRuntime &) = delete;
  PluginRuntime &operator=(const PluginRuntime &) = delete;

  // Loads the library, then creates and configures the instance. The part must not have an
  // instance, and still has none if this fails. The part must not be moved after this call.
  Result<void> load(PluginPart &part);
  // Starts a loaded part. Succeeds without effect if the part has no instance. If load() or start()
  // fails, part.failure is set to the reason.
  static Result<void> start(PluginPart &part);
  // Stops the instance if it was started.
  static void stop(PluginPart &part);
  // Stops all parts in reverse order. `parts` is a container of pointers to parts.
  template <class Parts>
  static void stop_all(Parts &parts) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) stop(**part);
  }

  // Must be called after a reload: later starts of servers use the profile's new paths.
  void protect_files();
  bool has_children() const { return spawner_ != nullptr && spawner_->size() > 0; }
  // Replaces the secrets that bh.host.mask/1 masks.
  void set_prints(std::shared_ptr<const SecretPrints> prints) { prints_ = std::move(prints); }
  std::shared_ptr<const SecretPrints> prints() const { return prints_.load(); }
  // See Spawner::missing().
  std::vector<std::string> servers_missing() const;

 private:
  void make_spawner();
  Result<std::unique_ptr<Instance>> create(PluginPart &part);

  const Profile &profile_;
  PluginRuntimeOptions options_;
  std::unique_ptr<Spawner> spawner_;
  std::atomic<std::shared_ptr<const SecretPrints>> prints_;
  HostContext context_;
};

// Returns the part's HTTP client, or null if the part is not running or provides none. Sets *self
// to the pointer that the client's functions expect.
const bh_http_service *http_service_of(const PluginPart &part, void **self);
// Returns the HTTP client of the first part that provides one, or null.
template <class Parts>
const bh_http_service *find_http_service(const Parts &parts, void **self) {
  for (const auto &part : parts) {
    if (const bh_http_service *service = http_service_of(*part, self)) return service;
  }
  return nullptr;
}

}  // namespace bulkhead
