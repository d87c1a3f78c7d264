// Replaces the files of tools plugins, and of policies and telemetry plugins in compartments of
// their own, while the gateway runs, and restores them.
//
// Verifies and stores the new file, and keeps the version before it, so that it can be restored.
// The caller starts the new version and reports the result. A swap is in force until the gateway
// stops or the profile specifies another file for the plugin.
//
// Owned by the gateway. All functions must be called on the reactor thread; files are read and
// written on a pool thread, except by hold().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "service/service_protocol.hpp"
#include "swap/plugin_store.hpp"

namespace bulkhead::program {

// A version of a plugin that may be put into use.
struct PluginVersion {
  PluginFile file;
  std::string version;
  std::shared_ptr<const StoredPlugin> stored;
};

// A swap that has been prepared: `to` replaces `from`.
struct PluginChange {
  std::string group;         // "tools", "policies" or "telemetry"
  std::string id;            // of the instance
  std::string plugin, base;  // what the profile specifies: the plugin, and the mark of its file
  PluginVersion from, to;
  PluginTrust trust;  // the rules that `to` satisfied; default for a rollback
  bool rollback = false;
};

class PluginSwaps {
 public:
  // How long the version before a swap can be restored.
  static constexpr std::uint64_t rollback_ms = 3'600'000;

  PluginSwaps(Reactor &reactor, std::string state_dir);
  ~PluginSwaps();  // waits for the jobs on pool threads
  PluginSwaps(const PluginSwaps &) = delete;
  PluginSwaps &operator=(const PluginSwaps &) = delete;

  // Removes copies that no gateway uses. Must be called once.
  void remove_unused();
  // Opens the files of the plugins that can be swapped, so that they can be restored even if they
  // are replaced. Must be called when the profile is in use. Opens only files that have changed
  // since the last call. Blocks for file access.
  void hold(const Profile &profile);

  // Replaces the files in a profile that was read again, except those of plugins that have another
  // file there or whose file the profile pins or the organization locks.
  void apply_to(Profile *profile, const std::vector<ProfileHold> &holds) const;
  // Must be called when a profile is in use. Forgets the swaps that are not part of it.
  void forget_unused(const Profile &in_use);

  // Prepares a swap or a rollback of `profile`, the profile in use. `done` is called once, from the
  // loop, with the change or with an error for the user.
  void prepare(const Profile &profile, const std::vector<ProfileHold> &holds,
               const PluginSwapRequest &request, std::function<void(Result<PluginChange>)> done);

  // Returns why plugins of this profile cannot have `watch = true`, or an empty string.
  static std::string watch_refusals(const Profile &profile, const std::vector<ProfileHold> &holds);

  // Must be called when the new version is in use. Logs the change (PluginLog), and returns the
  // response to the request.
  PluginSwapped in_use(const PluginChange &change);
  // Must be called when the former version is in use again after a swap that had stopped it. From
  // then on, it runs from its copy, because the profile's file may be the version that failed.
  // Returns the file of the copy.
  PluginFile restored(const PluginChange &change);

 private:
  struct Job;
  // A plugin that was swapped at least once.
  struct Swap {
    std::string plugin, base;  // what the profile specifies: the plugin and the mark of its file
    PluginVersion current;
    PluginTrust trust;             // the rules that `current` satisfied when it was put into use
    PluginVersion previous;        // stored is null if it cannot be restored
    std::uint64_t previous_until;  // in ns of the reactor's clock
  };
  // The file of a plugin that has not been swapped.
  struct Held {
    std::string mark;
    std::shared_ptr<const OpenPlugin> plugin;
  };

  Result<PluginChange> rollback(const std::string &group, const PluginUse &use) const;
  void prepared(Job &job);
  void log_change(const PluginChange &change);

  Reactor &reactor_;
  const std::string state_dir_;
  std::map<std::string, Swap> swaps_;  // by group and instance: "tools.mine"
  std::map<std::string, Held> held_;   // the same
  std::uint32_t running_ = 0;          // number of jobs on pool threads
};

}  // namespace bulkhead::program
