// What a program gives to its host, and the functions that the host calls.
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

// A server or a plugin that runs in another process: which compartment has it, and the plugin's
// name on the link there. Not its number: a reload gives the plugins of a compartment other
// numbers.
struct RemoteUse {
  std::string compartment;
  std::string plugin;
};
// A policy and a telemetry plugin are "policies/ID" and "telemetry/ID" among them; names have no
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
  // true: start upstreams immediately; false: when the first client has sent its capabilities.
  bool eager = true;
  // Plugins linked into the program: entry functions by plugin name, searched before files.
  std::vector<std::pair<std::string, bh_plugin_entry_fn>> static_plugins;
  // Files opened and checked before this process gave up the right to read them, by the plugin's
  // name in the profile; searched before the folders.
  std::map<std::string, CheckedLibrary> checked_plugins;
  // The profile's servers and plugins behind a link, by remote_name(); see attach().
  std::map<std::string, RemoteUse> remote;
  // The process of that compartment is unresponsive or has violated the protocol. Called on the
  // reactor thread.
  std::function<void(const std::string &compartment)> on_unhealthy;
  // An approval has ended, with any outcome; this is also logged. Called on the reactor thread,
  // inside the router: it stores the outcome and returns.
  std::function<void(const ApprovalOutcome &)> on_approval;
  // Appended to the refusal of a call that no surface could approve: how to approve calls, for
  // example a command; may be empty.
  std::string approval_hint;
  // New or changed tool definitions (see profile/pins.hpp). A program that stores them sets them in
  // the next profile as `pinned`. Called like on_approval.
  std::function<void(const std::vector<PinNews> &)> on_pins;
  // A lazy server's list is new or has changed. A program that stores it sets it in the next
  // profile as the server's `kept`, with its `definition`. Only for servers whose kept.definition
  // is set. Called like on_approval.
  std::function<void(const ListNews &)> on_list;
  // 32 bytes, the same in every run of this gateway. With the key, clients' sessions can be resumed
  // by the next process, and by this one if they were evicted. Empty: sessions end with the process
  // and with their eviction. `epoch` increases with each run.
  std::string sealing_key;
  std::uint32_t epoch = 0;
  // Session state from the previous process, and for the next one. Null: a resumed session has lost
  // its subscriptions and log level, and the client of the process (standard input) is a new one.
  std::shared_ptr<Ledger> ledger;
  // Servers without a PID namespace are always ended with all their descendants. With this option,
  // this also holds if their watching process is killed: the program becomes a child subreaper, and
  // when a server ends, orphaned children in sessions of their own are killed. Do not set it in a
  // program that starts such processes itself.
  bool adopt_orphans = false;
  // Services that another process provides to this one.
  HostServices services;
};

}  // namespace bulkhead
