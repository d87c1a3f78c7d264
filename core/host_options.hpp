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
  // Called on the reactor thread whenever a server's state or tool count changed.
  std::function<void()> on_status;
  // Start upstreams at once (true), or when the first client has said what it can do (false).
  bool eager = true;
  // Plugins linked into the program: entry functions by plugin name, looked at before files.
  std::vector<std::pair<std::string, bh_plugin_entry_fn>> static_plugins;
  // Files that were opened and checked before this process gave up reading them, by the plugin's
  // name in the profile; looked at before the folders.
  std::map<std::string, CheckedLibrary> checked_plugins;
  // Of the profile's servers and tools, policy and telemetry plugins, those behind a link, by
  // remote_name(); see attach().
  std::map<std::string, RemoteUse> remote;
  // The process of that compartment hangs or sends what it may not: it is of no use any more. On
  // the reactor thread.
  std::function<void(const std::string &compartment)> on_useless;
  // A question to a person (policy verdict "ask") has ended, however that was; the log has a line
  // of it, too. On the reactor thread, from inside the router: it takes a note and returns.
  std::function<void(const ApprovalOutcome &)> on_approval;
  // For the client whose call was refused since nobody could be asked: what would be asked, such as
  // a command; may be empty.
  std::string approval_hint;
  // Definitions of tools that were not known, or are others now (see profile/pins.hpp): whoever
  // keeps them has them in the next profile as `pinned`. As on_approval.
  std::function<void(const std::vector<PinNews> &)> on_pins;
  // What a lazy server lists was not known, or is another now: whoever keeps it has it in the next
  // profile as the server's `kept`, with the `definition` that it goes with. Only for servers whose
  // kept.definition is set. As on_approval.
  std::function<void(const ListNews &)> on_list;
  // 32 bytes, the same in every life of this gateway: its clients' sessions can go on in the next
  // one, and in this one if they were evicted to make room. Empty: they end with the process, and
  // with their eviction. `epoch` grows with each life.
  std::string sealing_key;
  std::uint32_t epoch = 0;
  // What the process before this one knew of its clients' sessions, and this one will leave to the
  // next; null: a session that goes on has lost its subscriptions and log level, and the client
  // that comes with the process (standard input) is a new one.
  std::shared_ptr<Ledger> ledger;
  // Servers without a PID namespace are ended with all that they have left behind in any case. With
  // this, also when somebody kills the process that sees to it: then the whole program is made a
  // child subreaper, and children of it that were left by others, in sessions of their own, are
  // killed when a server ends. Not for a program that starts such processes itself.
  bool adopt_orphans = false;
  // What another process does for this one.
  HostServices services;
};

}  // namespace bulkhead
