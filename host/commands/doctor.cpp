// Implements `doctor`, which checks the machine, the configuration, running gateways and servers,
// and explains how to fix each problem. `bulkhead-relay doctor` checks a guest's connection.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "bulkhead/cpp/json.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/findings.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "gateway/doctor_transports.hpp"
#include "gateway/local_session.hpp"
#include "gateway/run_host.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "plugin/loader.hpp"
#include "profile/layer.hpp"
#include "sandbox/features.hpp"
#include "sandbox/start_folder.hpp"
#include "service/control_client.hpp"
#include "shared/running_gateway.hpp"
#include "sources/file_folders.hpp"
#include "sources/plugin_check.hpp"
#include "sources/profile_source.hpp"
#include "sources/snapshot.hpp"
#include "sources/unmatched_names.hpp"
#include "state/list_store.hpp"

namespace bulkhead::program {
namespace {

using bh::json::member_text;

constexpr std::size_t longest_name = 64;  // of a tool; many clients reject longer names
// Tool descriptions of at most this many bytes cause a warning.
constexpr std::size_t good_description = 10;
constexpr std::size_t named_at_most = 5;

class Doctor {
 public:
  explicit Doctor(const Arguments &arguments) : arguments_(arguments) {}

  int run() {
    machine();
    const bool running = gateways();
    if (auto profile = configuration()) {
      plugins(*profile);
      disabled_servers(*profile);
      start_folders(*profile);
      grants(*profile);
      unmatched(*profile);
      check_transports(*profile, served_, &findings_);
      if (running) sharing(*profile);
      servers(std::move(*profile), running);
    }
    pins();
    roots();
    const bool written = write_stdout(arguments_.json ? as_json() : as_text());
    return written && !findings_.any_bad() ? exit_ok : exit_failed;
  }

 private:
  using Kind = Finding::Kind;

  void good(std::string text) { findings_.good(std::move(text)); }
  void doubtful(std::string text, std::string advice) {
    findings_.doubtful(std::move(text), std::move(advice));
  }
  void bad(std::string text, std::string advice) {
    findings_.bad(std::move(text), std::move(advice));
  }

  // ---- the machine ---------------------------------------------------------------------------

  void machine() {
    const Features has = probe_features();
    const std::size_t before = findings_.all().size();
    if (has.landlock < 4) {
      doubtful(
          has.landlock == 0 ? "this kernel does not support Landlock"
                            : "this kernel's Landlock does not support TCP rules",
          "Compartments are less restricted in file and TCP access. Use Linux 6.7 or newer with "
          "lsm=landlock; in a container, allow the Landlock system calls.");
    }
    if (!has.seccomp) {
      doubtful("system call filters are unavailable",
               "The container's own filter may block seccomp.");
    }
    if (!has.user_namespaces || !has.mount_namespaces || !has.pid_namespaces) {
      doubtful("this user cannot create namespaces",
               "Servers are sandboxed by Landlock only. Check kernel.unprivileged_userns_clone, "
               "kernel.apparmor_restrict_unprivileged_userns and the container's filter.");
    } else {
      namespaces(has);
    }
    if (findings_.all().size() == before) good("the kernel supports all isolation features");
  }

  void namespaces(const Features &has) {
    if (!has.network_namespaces) {
      doubtful("this user cannot create network namespaces",
               "Only the system call filter blocks network access by compartments.");
    }
    if (!has.ipc_namespaces || !has.uts_namespaces) {
      doubtful(std::string("this user cannot create ") +
                   (has.ipc_namespaces ? "UTS namespaces" : "IPC namespaces"),
               "Servers share System V IPC, POSIX message queues or the host name with each other "
               "and with your programs. Check user.max_ipc_namespaces, user.max_uts_namespaces "
               "and the kernel's CONFIG_IPC_NS, CONFIG_UTS_NS.");
    }
  }

  // ---- running gateways ----------------------------------------------------------------------

  bool gateways() {
    const auto found = ask_gateways(control_dirs(), "GET", "/status", status_wait_ms);
    for (const FoundGateway &gateway : found) {
      if (gateway.error.empty() && gateway.status != 200) {
        bad("gateway at " + tilde(gateway.socket) + ": responded with status " +
                std::to_string(gateway.status),
            "It is starting, stopping or overloaded; see its log.");
      } else if (gateway.error.empty()) {
        gateway_answers(gateway.answer);
      } else {
        bad("gateway at " + tilde(gateway.socket) + ": " + gateway.error,
            "It may be unresponsive or belong to another user; see its log.");
      }
    }
    if (found.empty()) {
      doubtful("no gateway is running",
               "Start one with `bulkhead serve`. Clients that run `bulkhead stdio` "
               "do not need one.");
    }
    return !found.empty();
  }

  // Reports the restrictions that are missing for servers. `object` is the status of a compartment
  // or of a single-process gateway.
  void servers_lack(std::string_view object, const std::string &whose) {
    const std::string missing = words(mcp::member(object, "servers_missing"));
    if (missing.empty()) return;
    doubtful("servers" + whose + " run without: " + printable(missing),
             "docs/profile.md, \"Sandboxing stdio servers\", describes each restriction; with "
             "[isolation] mode = \"require\", servers do not start if one is missing.");
  }

  static std::string words(std::string_view array) {
    std::string out;
    each(array, [&out](std::string_view word) {
      out.append(out.empty() ? "" : ", ").append(word.substr(1, word.size() - 2));
    });
    return out;
  }

  void gateway_answers(std::string_view status) {
    good("a gateway is running, pid " + std::string(mcp::member(status, "pid")));
    each(mcp::member(status, "endpoints"), [this](std::string_view one) {
      std::string scratch;
      if (one.starts_with('"')) served_.emplace_back(mcp::unquote(one, &scratch));
    });
    for (const ServerStatus &server : servers_in_snapshot(status).servers) {
      add_notes(server);
      if (server.state == ServerState::disabled && !server.reason.empty()) {
        disabled_there_[server.name] = server.reason;
      }
    }
    each(mcp::member(status, "compartments"), [this](std::string_view one) {
      const std::string name = member_text(one, "name"), state = member_text(one, "state");
      if (state != "running") {
        bad("compartment " + name + ": " + printable(state),
            "It is restarted until it fails five times in a row; see the log for the reason.");
      }
      const std::string missing = words(mcp::member(one, "missing"));
      if (!missing.empty()) {
        doubtful("compartment " + name + " runs without: " + printable(missing),
                 "docs/threat-model.md describes each restriction; with [isolation] mode = "
                 "\"require\", the gateway does not start if one is missing.");
      }
      servers_lack(one, " of compartment " + name);
    });
    servers_lack(status, "");
  }

  template <class F>
  static void each(std::string_view array, F &&body) {
    if (!array.starts_with('[')) return;
    mcp::for_each_item(array, body);
  }

  // ---- the configuration -----------------------------------------------------------------------

  std::optional<Profile> configuration() {
    auto loaded = load_checked(arguments_, Transports::served);
    if (!loaded) {
      for (const std::string &line : loaded.error()) {
        bad("configuration: " + line,
            "All errors are listed at once; docs/profile.md "
            "describes the keys.");
      }
      return std::nullopt;
    }
    good("configuration: " +
         (loaded->file.empty() ? "none, using the builtin one" : tilde(loaded->file)) + ", " +
         counted(loaded->profile.servers.size(), "server"));
    for (const std::string &note : loaded->profile.notes) {
      if (is_about_disabled(loaded->profile, note)) continue;
      doubtful("configuration: " + printable(note), "No action is needed if this is intended.");
    }
    return std::move(loaded->profile);
  }

  // Returns true if the note is about a disabled server. disabled_servers() reports such servers.
  static bool is_about_disabled(const Profile &profile, const std::string &note) {
    return std::any_of(profile.servers.begin(), profile.servers.end(),
                       [&](const ServerDef &server) {
                         return server.disabled && !server.disabled_reason.empty() &&
                                note.ends_with(server.disabled_reason) &&
                                note.find("server \"" + server.name + "\"") != std::string::npos;
                       });
  }

  // Returns advice about a server that is disabled for this reason here.
  static std::string advice_here(std::string_view reason) {
    if (reason.starts_with(kNotApproved))
      return "`bulkhead approve` shows the servers of a project file.";
    if (reason.starts_with(kWrongDefinition)) {
      return "All other servers are available. Correct the definition; `bulkhead reload` applies "
             "it to a running gateway.";
    }
    return "All other servers are available. Correct this in the gateway's environment, and "
           "restart the gateway.";
  }

  // Returns advice about a server that is disabled for this reason only in a running gateway.
  static std::string advice_there(std::string_view reason) {
    if (reason.starts_with(kNotApproved)) return "`bulkhead reload` applies approvals.";
    if (reason.starts_with(kWrongDefinition)) {
      return "If the definition was corrected, run `bulkhead reload`. If it contains variables, "
             "restart the gateway with the correct values: the gateway reads variables from its "
             "own environment, not from this shell.";
    }
    return "The gateway reads variables from its own environment, not from this shell. Restart the "
           "gateway with the variable set.";
  }

  // Reports the servers that are disabled for a reason other than `disabled` in the profile, here
  // or in a running gateway.
  void disabled_servers(const Profile &profile) {
    for (const ServerDef &server : profile.servers) {
      const std::string &reason = server.disabled_reason;
      if (!server.disabled || reason.empty()) continue;
      doubtful("server " + server.name + " is disabled: " + printable(reason), advice_here(reason));
    }
    for (const ServerDef &server : profile.servers) {
      const auto there = disabled_there_.find(server.name);
      if (server.disabled || there == disabled_there_.end()) continue;
      doubtful("server " + server.name +
                   " is disabled in the running gateway: " + printable(there->second),
               advice_there(there->second));
    }
  }

  // Reports whether commands in this shell and folder use a running gateway.
  void sharing(const Profile &profile) {
    constexpr std::string_view joining =
        "`bulkhead stdio`, `tools`, `resources`, `prompts` and `call`";
    const GatewaySearch search = find_running_gateway(profile);
    if (search.found) {
      good(std::string(joining) + " in this folder use the servers of " + search.found->endpoint());
    } else if (!search.reason.empty()) {
      doubtful(std::string(joining) +
                   " in this folder start servers of their own: " + printable(search.reason),
               "docs/control.md, \"Sharing a running gateway\", describes what is compared.");
    }
  }

  void plugins(const Profile &profile) {
    std::size_t sound = 0;
    std::string by_path;
    for (const FoundPlugin &plugin : find_plugins(profile)) {
      if (plugin.error.empty()) {
        ++sound;
        const std::string folder = plugin.path.substr(0, plugin.path.find_last_of('/'));
        const auto &dirs = profile.plugin_dirs;
        if (std::find(dirs.begin(), dirs.end(), folder) == dirs.end())
          by_path += (by_path.empty() ? "; named by path: " : ", ") + tilde(plugin.path);
      } else {
        bad("plugin " + printable(tilde(plugin.path)) + ": " + printable(plugin.error),
            "A plugin that fails verification is not loaded; see `bulkhead plugin list`.");
      }
    }
    if (sound != 0) {
      good(counted(sound, "plugin") + " can be loaded" + printable(by_path));
    } else {
      bad("no plugins found",
          "Install plugins next to the program, or specify their folder with "
          "--plugin-dir.");
    }
  }

  void start_folders(const Profile &profile) {
    std::string names;
    for (const ServerDef &server : profile.servers) {
      if (server.disabled || server.command.empty() || !server.cwd.empty()) continue;
      if (starts_in_private_folder(server.command, server.args, server.cwd)) continue;
      names.append(names.empty() ? "" : ", ").append(printable(server.name));
    }
    if (names.empty()) return;
    doubtful("servers that run in the gateway's working directory: " + names,
             "Programs may load code and settings from this directory (node_modules, Python "
             "modules, configuration files), and a repository may contain such files. Set \"cwd\" "
             "for servers that do not need files from this directory.");
  }

  // Reports rules and tool lists that name an unknown server or tool.
  void unmatched(Profile profile) {
    load_existing_lists(&profile);
    for (const std::string &line : unmatched_names(profile)) {
      doubtful("configuration: " + printable(tilde(line)), "Correct the name.");
    }
  }

  // Reports paths that the profile grants to a server but that the server still cannot access.
  void grants(const Profile &profile) {
    for (const ServerDef &server : profile.servers) {
      if (server.disabled || server.command.empty() || server.sandbox.mode == SandboxMode::off) {
        continue;
      }
      const auto policy = parse_child_policy(server.name, server.to_json());
      if (!policy) continue;  // reported when the server starts
      const ViewRequest request = view_request(profile, &*policy);
      const ChildView view = plan_view(request);
      if (!view.refused.empty()) not_granted(server.name, "it is not started: " + view.refused);
      for (const std::string &path : view.ignored) not_granted(server.name, path);
      for (const std::string &note : view.notes) not_granted(server.name, note);
    }
  }
  void not_granted(const std::string &server, const std::string &what) {
    doubtful("the sandbox of server " + printable(server) + ": " + printable(what),
             "docs/profile.md, \"Sandboxing stdio servers\", describes which paths become "
             "accessible to a server.");
  }

  // ---- the servers -----------------------------------------------------------------------------

  void servers(Profile profile, bool running) {
    if (profile.servers.empty() && profile.tools.empty()) return;
    profile.transports.clear();
    state_dir_ = profile.state_dir;
    ShortRun short_run(arguments_);
    if (auto started = short_run.start(std::move(profile)); !started) {
      return bad("cannot start the servers: " + started.error().text,
                 running ? "This check starts its own servers; gateways that are already running "
                           "are not affected."
                         : "See the messages above.");
    }
    short_run.wait_settled();
    for (const ServerStatus &server : short_run.host().status().servers) {
      state(server);
      add_notes(server);
    }
    LocalSession session(short_run.host());
    if (auto opened = session.open(); !opened) {
      return bad("initialize: " + opened.error().text, "This is a bug in the gateway.");
    }
    tools(session);
  }

  void state(const ServerStatus &server) {
    if (server.state == ServerState::ready) {
      return good("server " + server.name + ": " + counted(server.tools, "tool") +
                  (server.protocol.empty() ? "" : ", MCP " + printable(server.protocol)));
    }
    if (server.state == ServerState::idle) return good("server " + server.name + ": idle (lazy)");
    if (server.state == ServerState::disabled) return;  // reported by disabled_servers()
    const std::string log = state_dir_ + "/log/servers/" + server.name + ".log";
    const bool has_log = ::access(log.c_str(), R_OK) == 0;
    bad("server " + server.name + ": " + printable(server.reason),
        (has_log ? "In a gateway, its standard error is logged to " + tilde(log) + "; "
                 : std::string()) +
            "docs/profile.md describes time-outs and sandboxes.");
  }

  void add_notes(const ServerStatus &server) {
    if (server.requested_roots) roots_off_.insert(server.name);
    const std::string note = unapproved_note(server);
    if (!note.empty()) unapproved_[server.name] = note;
  }

  // Reports the servers with tools that differ from their pins, whether they were started by this
  // command or by a running gateway.
  void pins() {
    for (const auto &[server, note] : unapproved_) {
      doubtful("server " + printable(server) + ": " + note,
               "`bulkhead pins show " + printable(server) +
                   "` shows what changed; `bulkhead pins "
                   "approve " +
                   printable(server) + "` approves it.");
    }
  }

  // Reports the servers that have requested roots although their "roots" key is "off", whether they
  // were started by this command or by a running gateway.
  void roots() {
    for (const std::string &server : roots_off_) {
      doubtful("server " + printable(server) +
                   " requests the client's roots (roots/list), but its \"roots\" key is \"off\"",
               "In [mcpServers." + printable(server) +
                   "], roots = \"static\" with root_folders = [\"/folder\"] gives all clients the "
                   "same roots; roots = \"per-client\" passes each client's own roots, with a "
                   "separate process or connection for each client that has roots.");
    }
  }

  void tools(LocalSession &session) {
    const auto listed = session.list("tools/list", "tools");
    if (!listed) {
      return bad("tools/list: " + listed.error().text, "Clients cannot use any tool.");
    }
    std::vector<std::string> longer, silent, odd;
    for (const std::string &tool : *listed) {
      const std::string name = printable(member_text(tool, "name"));
      if (name.size() > longest_name) longer.push_back(name);
      if (member_text(tool, "description").size() <= good_description) silent.push_back(name);
      if (member_text(mcp::member(tool, "inputSchema"), "type") != "object") odd.push_back(name);
    }
    doubt(longer, "whose name many clients reject (more than 64 characters)",
          "[naming] long_names = \"shorten\" shortens them.");
    doubt(silent, "without a useful description", "Models cannot decide when to use them.");
    doubt(odd, "with an inputSchema that is not an object", "Clients may reject the whole list.");
    // The requests of this check are recorded like those of any client, so it sends a request that
    // succeeds: failures in the records would be misleading.
    const auto pinged = session.request("ping", "{}", 10'000);
    if (!pinged) {
      bad("ping: " + pinged.error().text, "This is a bug in the gateway.");
    } else {
      good(counted(listed->size(), "tool") + (listed->size() == 1 ? " is" : " are") +
           " listed; the gateway responds to requests");
    }
  }

  void doubt(const std::vector<std::string> &names, std::string_view what,
             std::string_view advice) {
    if (names.empty()) return;
    std::string text = counted(names.size(), "tool") + " " + std::string(what) + ":";
    for (std::size_t i = 0; i < std::min(names.size(), named_at_most); ++i) text += " " + names[i];
    doubtful(std::move(text), std::string(advice));
  }

  // ---- the report ------------------------------------------------------------------------------

  static std::string_view word(Kind kind) {
    static constexpr std::array<std::string_view, 3> words = {"ok", "warn", "FAIL"};
    return words[static_cast<std::size_t>(kind)];
  }

  std::string as_text() const {
    std::string out;
    for (const Finding &finding : findings_.all()) {
      std::string mark(word(finding.kind));
      mark.resize(6, ' ');
      out += mark + printable(finding.text) + "\n";
      if (!finding.advice.empty()) out += "      " + printable(finding.advice) + "\n";
    }
    return out;
  }

  std::string as_json() const {
    std::string out = "[";
    for (const Finding &finding : findings_.all()) {
      out += out.size() > 1 ? ",\n {" : "\n {";
      bh::json::append_member(&out, "result", word(finding.kind));
      bh::json::append_member(&out, "text", finding.text);
      bh::json::append_member(&out, "advice", finding.advice);
      out += "}";
    }
    return out + "\n]\n";
  }

  const Arguments &arguments_;
  Findings findings_;
  std::string state_dir_;
  std::set<std::string> roots_off_;                    // servers that have requested roots
  std::map<std::string, std::string> unapproved_;      // unapproved_note(), by server
  std::map<std::string, std::string> disabled_there_;  // reasons in running gateways, by server
  std::vector<std::string> served_;                    // endpoints of running gateways
};

}  // namespace

int run_doctor(const Arguments &arguments) {
  return Doctor(arguments).run();
}

}  // namespace bulkhead::program
