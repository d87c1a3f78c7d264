// The options and callbacks that a program passes to Host::create().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/owned_fd.hpp"
#include "bulkhead/abi/plugin.h"
#include "plugin/loader.hpp"
#include "plugin/services.hpp"
#include "profile/profile.hpp"
#include "route/approval.hpp"

namespace bulkhead {

class Ledger;

enum class LogLevel : std::int32_t { debug, info, warn, error };

// A process that replaces the one of a policy: its compartment, and the socket that connects to it.
struct NextPolicy {
  std::string compartment;
  OwnedFd trunk;
};

// A server or plugin in another process: its compartment, and the plugin's name on the link to that
// compartment. Plugins are identified by name because a reload changes their numbers.
struct RemoteUse {
  std::string compartment;
  std::string plugin;
};
// Returns the key of a plugin in HostOptions::remote. A policy or telemetry plugin is named
// "policies/ID" or "telemetry/ID". Other names contain no '/'.
inline std::string remote_name(std::string_view group, const std::string &id) {
  return group == "tools" ? id : std::string(group) + "/" + id;
}

struct HostOptions {
  // Receives the log lines of at least log_level. Can be called on any thread. May be empty.
  std::function<void(LogLevel, std::string_view component, std::string_view text)> log;
  LogLevel log_level = LogLevel::info;
  // Called on the reactor thread when a server's state, its number of tools or
  // HostStatus::servers_missing has changed. The host may be in the middle of a change, so the
  // function must defer its work.
  std::function<void()> on_status;
  // If true, upstreams are started immediately. If false, they are started when the first client
  // has declared its capabilities.
  bool eager = true;
  // The entry functions of plugins that are linked into the program, by plugin name. They take
  // precedence over plugin files.
  std::vector<std::pair<std::string, bh_plugin_entry_fn>> static_plugins;
  // Plugin files, keyed by the plugin's name in the profile. They were opened and verified before
  // this process gave up access to them. They take precedence over the plugin folders.
  CheckedLibraries checked_plugins;
  // The profile's servers and plugins that run in other processes, keyed by remote_name(). Each
  // process is connected with Host::attach().
  std::map<std::string, RemoteUse> remote;
  // Called on the reactor thread if a compartment's process is unresponsive or has violated the
  // protocol.
  std::function<void(const std::string &compartment)> on_unhealthy;
  // Called when an approval request is resolved (approved, denied or expired). The outcome has
  // already been logged. Runs on the reactor thread inside the router, so it must only store the
  // outcome.
  std::function<void(const ApprovalOutcome &)> on_approval;
  // Text that is appended to the error if a call requires approval and there is no approver. It
  // tells the user how to approve calls, for example which command to run. May be empty.
  std::string approval_hint;
  // Receives new and changed tool definitions (see profile/pins.hpp). A program that stores them
  // puts them in `pinned` of the next profile. Runs on the reactor thread inside the router, so it
  // must only store them.
  std::function<void(const std::vector<PinNews> &)> on_pins;
  // Called when a lazy server's list is new or has changed, if the profile sets the server's
  // kept.definition. A program that stores the list puts it in the server's `kept` in the next
  // profile, together with its `definition`. Runs on the reactor thread inside the router, so it
  // must only store the list.
  std::function<void(const ListNews &)> on_list;
  // The 32-byte key that seals client sessions. If it is the same in every run, a restarted process
  // can resume client sessions, and a running process can resume evicted sessions. If it is empty,
  // sessions are lost when the process exits or evicts them. `epoch` increases with each run.
  std::string sealing_key;
  std::uint32_t epoch = 0;
  // Stores session state so that it survives a restart of the process. If null, resumed sessions
  // lose their subscriptions and log level, and the client on standard input must initialize again.
  std::shared_ptr<Ledger> ledger;
  // If set, this process kills the orphaned descendants of a server that has exited, even if the
  // process that watches the server was killed. This is needed only for servers without a PID
  // namespace. This process becomes a child subreaper and kills every orphan that is a session
  // leader, so the program must not start such processes itself.
  bool adopt_orphans = false;
  // Services that another process provides to this process.
  HostServices services;
};

}  // namespace bulkhead
