// The options and callbacks that a program passes to its host.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/abi/plugin.h"
#include "plugin/loader.hpp"
#include "plugin/services.hpp"
#include "profile/profile.hpp"
#include "route/approval.hpp"

namespace bulkhead {

class Ledger;

enum class LogLevel : std::int32_t { debug, info, warn, error };

// A server or plugin in another process, identified by its compartment and the plugin's name on the
// compartment's link. A name is used instead of a number because a reload renumbers a compartment's
// plugins.
struct RemoteUse {
  std::string compartment;
  std::string plugin;
};
// Policy and telemetry plugins are named "policies/ID" and "telemetry/ID"; other names contain no
// '/'.
inline std::string remote_name(std::string_view group, const std::string &id) {
  return group == "tools" ? id : std::string(group) + "/" + id;
}

struct HostOptions {
  // Receives every log line (component, text); may be empty. Called on any thread.
  std::function<void(LogLevel, std::string_view component, std::string_view text)> log;
  LogLevel log_level = LogLevel::info;
  // Called on the reactor thread when a server's state or tool count has changed.
  std::function<void()> on_status;
  // If true, upstreams start immediately. If false, they start when the first client has sent its
  // capabilities.
  bool eager = true;
  // Plugins linked into the program: entry functions by plugin name. They take precedence over
  // files.
  std::vector<std::pair<std::string, bh_plugin_entry_fn>> static_plugins;
  // Files that were opened and checked before this process gave up permission to read them, keyed
  // by the plugin's name in the profile. They take precedence over the folders.
  std::map<std::string, CheckedLibrary> checked_plugins;
  // The profile's servers and plugins that are behind a link, keyed by remote_name(); see attach().
  std::map<std::string, RemoteUse> remote;
  // Called on the reactor thread when a compartment's process is unresponsive or has violated the
  // protocol.
  std::function<void(const std::string &compartment)> on_unhealthy;
  // Called when an approval has ended, with any outcome. The outcome is also logged. Called on the
  // reactor thread, inside the router, so it must only store the outcome.
  std::function<void(const ApprovalOutcome &)> on_approval;
  // Appended to the error of a call that has no approver. Explains how to approve calls, for
  // example with a command; may be empty.
  std::string approval_hint;
  // Receives new or changed tool definitions (see profile/pins.hpp). A program that stores them
  // passes them in the next profile as `pinned`. Called like on_approval.
  std::function<void(const std::vector<PinNews> &)> on_pins;
  // Called when a lazy server's list is new or has changed. A program that stores the list passes
  // it in the next profile as the server's `kept`, with its `definition`. Called only for servers
  // whose kept.definition is set. Called like on_approval.
  std::function<void(const ListNews &)> on_list;
  // The key that seals client sessions: 32 bytes, the same in every run of this gateway. With the
  // key, the next process can resume client sessions, and this process can resume evicted sessions.
  // If the key is empty, sessions end with the process or when they are evicted. `epoch` increases
  // with each run.
  std::string sealing_key;
  std::uint32_t epoch = 0;
  // Passes session state from the previous process and to the next process. If null, resumed
  // sessions lose their subscriptions and log level, and the client on standard input is treated as
  // a new client.
  std::shared_ptr<Ledger> ledger;
  // Ends the descendants of servers without a PID namespace even if the process that watches them
  // is killed. The program becomes a child subreaper. When a server ends, orphaned child processes
  // in their own sessions are killed. Must not be set in a program that itself starts such
  // processes.
  bool adopt_orphans = false;
  // Services that another process provides to this one.
  HostServices services;
};

}  // namespace bulkhead
