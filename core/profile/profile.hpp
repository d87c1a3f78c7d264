// The profile: the configuration of a process, read from TOML or JSON. The reader is strict and
// reports all errors with their locations. Each value records the layer from which it came.
//
// Used only on the control thread. The functions declared here do not use the network or start
// processes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/kept_lists.hpp"
#include "profile/pins.hpp"

namespace bulkhead {

// The location at which a value was written. `line` is 0 if the value did not come from a file.
struct Origin {
  std::string layer;  // "builtin", "user", "file", "project", "command line"
  std::string file;
  std::uint32_t line = 0;
  bool operator==(const Origin &) const = default;
};

struct ProfileError {
  std::string file;
  std::uint32_t line = 0;    // 0: unknown
  std::uint32_t column = 0;  // 0: unknown
  std::string path;          // "mcpServers.github.env.TOKEN"
  std::string what;          // the error and the allowed values; contains no credential
  // An identifier for programs: "file_not_found", "unreadable", "too_large", "invalid_json",
  // "invalid_toml", "invalid_schema", "unknown_key", "missing_env_var", "plugin_unusable" or
  // "plugin_config".
  std::string code;
};
// Formats an error for users: "gateway.json:12:7: mcpServers.github.env.TOKEN: ...
// [missing_env_var]".
std::string to_string(const ProfileError &error);

enum class SessionScope : std::uint8_t { shared, per_client };

// How a server obtains MCP roots. off: the capability is not declared. static_list: the gateway
// answers roots/list with ServerDef::root_folders. per_client: the client answers, and clients that
// declare roots have separate connections.
enum class RootsMode : std::uint8_t { off, static_list, per_client };
std::string_view to_string(RootsMode mode) noexcept;  // as in the profile

// The MCP revision that a server is opened with. automatic: the gateway finds out which one the
// server supports.
enum class ProtocolPin : std::uint8_t {
  automatic,
  v2024_11_05,
  v2025_03_26,
  v2025_06_18,
  v2025_11_25,
  v2026_07_28
};
std::string_view to_string(ProtocolPin pin) noexcept;  // as in the profile

// Sandbox of a server's child process. The modes are specified in docs/profile.md.
enum class SandboxMode : std::uint8_t { strict, home_read_only, off };
std::string_view to_string(SandboxMode mode) noexcept;  // as in the profile

struct SandboxRules {
  SandboxMode mode = SandboxMode::home_read_only;
  std::vector<std::string> read, write;  // additional paths, absolute
  bool network = true;
  std::uint64_t memory_bytes = 0;                  // 0: no separate limit
  std::uint32_t processes = 1024;                  // including threads
  std::uint64_t cache_bytes = 10u * (1ull << 30);  // of the server's caches on disk; 0: no limit
  bool host_ipc = false;  // shares the machine's System V IPC and POSIX message queues
  bool operator==(const SandboxRules &) const = default;
};

// One upstream server with resolved references (${env:..}).
struct ServerDef {
  std::string name;  // [A-Za-z0-9_.-]{1,64}, not reserved, without the separator
  std::string type;  // "stdio", "http", "sse", or a type from [connectors]
  bool disabled = false;
  std::string disabled_reason;  // shown to users; empty: disabled by the profile
  bool unmet = false;           // disabled because of a missing or invalid variable
  // stdio
  std::string command;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;
  std::string cwd;  // empty: the gateway's folder
  SandboxRules sandbox;
  bool lazy = false;               // started by the first call
  std::uint64_t idle_stop_ms = 0;  // stopped after this time without calls; 0: never
  std::uint32_t pool_size = 1;     // child processes that share the calls of pool_safe_tools
  std::vector<std::string> pool_safe_tools;
  // http, sse
  std::string url;
  std::map<std::string, std::string> headers;
  // both
  std::optional<std::vector<std::string>> allow_tools;  // set but empty: no tool is allowed
  std::vector<std::string> deny_tools;
  std::optional<std::uint64_t> timeout_ms;                // for each call
  std::map<std::string, std::uint64_t> tool_timeouts_ms;  // by original tool name
  std::optional<std::uint64_t> connect_timeout_ms;
  ProtocolPin protocol = ProtocolPin::automatic;
  SessionScope session = SessionScope::shared;
  std::optional<RootsMode> roots;         // not set: see roots_mode()
  std::vector<std::string> root_folders;  // for static_list: absolute paths
  std::uint32_t max_in_flight = 256;
  std::string compartment;  // "own" or a shared name; empty: its connector's compartment
  Origin origin;
  std::string source;  // the plugin that added it, shown to users; empty: the profile
  // Additional members for the output of to_json(), set by the core ("stderr_file"): name -> value
  // as JSON text.
  std::map<std::string, std::string> extra;
  KeptLists kept;  // of a lazy server
  // Number of restarts requested while the gateway has been running (`bulkhead mcp restart`). If
  // the number changes, a new connection is required. Not part of to_json().
  std::uint64_t restarts = 0;

  // If `roots` is not set, returns per_client if each client has its own connection, and off
  // otherwise.
  RootsMode roots_mode() const noexcept {
    const bool own = session == SessionScope::per_client;
    return roots.value_or(own ? RootsMode::per_client : RootsMode::off);
  }

  // Returns the definition for the connector: one JSON object with type, command, args, env, cwd,
  // sandbox or url, headers, connect_timeout_ms and the members of `extra`. Empty values are
  // omitted. Contains credentials.
  std::string to_json() const;

  bool operator==(const ServerDef &) const = default;
};

struct Naming {
  std::string separator = "__";
  bool prefix = true;               // "always"; false: "never"
  std::string scheme = "bulkhead";  // of composed resource URIs
  bool shorten = true;              // if false, names over max_length are errors
  std::uint32_t max_length = 64;
  // Server names must match ^[a-z][a-z0-9-]*$, and more names are reserved.
  bool strict_names = false;
  bool bad_names_error = false;  // false: a server with an invalid name is skipped, with a note
  // Tool aliases: accepted name -> listed name. At most max_aliases.
  std::map<std::string, std::string, std::less<>> aliases;
  static constexpr std::size_t max_aliases = 256;
  bool operator==(const Naming &) const = default;
};

// The features of the merged servers that clients can use. A disabled feature is not announced, and
// requests for it fail with error -32601.
struct Expose {
  bool tools = true, resources = true, prompts = true, logging = true, completions = true;
  bool list_changed = true, subscribe = true;
  bool operator==(const Expose &) const = default;
};

// All gateway limits. docs/limits.md must list the same limits.
struct Limits {
  std::uint64_t message_bytes = 64ull << 20;
  std::uint64_t header_bytes = 32ull << 10;
  std::uint64_t sessions = 4096;
  std::uint64_t session_idle_ms = 30 * 60'000;
  std::uint64_t event_buffer_bytes = 1ull << 20;
  std::uint64_t write_queue_bytes = 80ull << 20;
  std::uint64_t write_stall_ms = 60'000;
  std::uint64_t request_read_ms = 30'000;
  std::uint64_t shutdown_grace_ms = 3'000;
  std::uint64_t connect_timeout_ms = 10'000;
  std::uint64_t call_timeout_ms = 300'000;     // tools/call
  std::uint64_t request_timeout_ms = 60'000;   // all other requests
  std::uint64_t timeout_ceiling_ms = 300'000;  // longer configured time-outs are reduced to this
  std::uint64_t ask_timeout_ms = 600'000;      // for the client's answer to an elicitation
  std::uint64_t first_list_wait_ms = 5'000;
  std::uint64_t grace_ms = 3'000;  // how long a lost server's tools stay listed
  std::uint64_t drain_ms = 5'000;  // for in-flight calls when a reload removes their server
  std::uint64_t retry_min_ms = 500;
  std::uint64_t retry_max_ms = 30'000;
  std::uint32_t in_flight_per_session = 256;
  std::uint32_t queued_per_server = 1024;  // calls that wait for max_in_flight or for a start
  std::uint32_t asks_per_session = 64;
  std::uint32_t subscriptions_per_session = 1024;
  std::uint32_t listens_per_client = 8;     // open subscriptions/listen requests
  std::uint32_t items_per_server = 10'000;  // of each kind
  std::uint64_t list_bytes_per_server = 32ull << 20;
  std::uint32_t page_items = 1000;          // in one page of a list
  std::uint64_t idle_view_ms = 300'000;     // for lanes that no client uses
  std::uint64_t policy_timeout_ms = 5'000;  // for one decision of a policy
  std::uint64_t policy_waiting_bytes = 256ull << 20;
  std::uint64_t approval_timeout_ms = 120'000;  // for the approval of a call
  std::uint32_t approvals_waiting = 256;        // calls that wait for approval
  std::uint32_t approvals_per_session = 128;
  std::uint64_t approvals_bytes = 64ull << 20;
  std::uint64_t plugin_init_ms = 5'000;
  std::uint64_t stderr_bytes = 1ull << 20;  // a child process's log before it is rotated
};

// The plugin's library file at the time when the profile was read. Set by the program; the profile
// text has no key for it.
struct PluginFile {
  std::string mark;        // changes when the file changes; empty: unknown, or pinned by digest
  bool exclusive = false;  // from the manifest; not compared
  bool operator==(const PluginFile &other) const noexcept { return mark == other.mark; }
};

// One plugin instance of the profile.
struct PluginUse {
  std::string id;           // the instance: "transport-http", "files"
  std::string plugin;       // the library's name, or a path with a slash
  std::string config_json;  // one JSON object
  std::string sha256;       // pinned digest in hex; empty: not pinned
  bool required = true;     // if false, the program runs without it when it fails to load
  // "own", a shared name, or "endpoint" (only for policies and telemetry). Empty: the default.
  std::string compartment;
  // Optional permissions: "control", "network[:PORT]".
  std::vector<std::string> grants;
  PluginFile file;
  Origin origin;
  bool operator==(const PluginUse &) const = default;
};

// Returns the port of a network grant: PORT for "network:PORT", or 0 (any port) for "network".
// Returns nullopt for other grants.
std::optional<std::uint16_t> granted_port(std::string_view grant);

// Identifies the current policies and rules; see profile/policy_mark.hpp.
struct PolicyMark {
  std::uint64_t generation = 0;      // starts at 1 in each run of the gateway; 0: unknown
  std::string digest;                // equal in two processes if their policies and rules are equal
  std::uint32_t rules = 0;           // named rules in all layers of the profile
  std::vector<std::string> changes;  // differences from the previous generation, as text
  bool operator==(const PolicyMark &) const = default;
};

// Isolation requirements.
struct Isolation {
  bool require = false;  // false: start even if the kernel lacks a feature, and report it
};

// The approvers of calls, in addition to a terminal that watches approvals.
struct Approvers {
  bool elicitation = false;  // the client itself, if it supports MCP elicitation
  bool api = false;          // the service API, even without a watcher
  bool operator==(const Approvers &) const = default;
};

// The gateway's owner, for the session database. Set by the loader; the profile has no key for it.
struct Identity {
  std::string profile, user;
};

// A part of the profile that some sources cannot set. The corporation's layer protects it from
// higher layers, or a layer with editable.mcpServers = false protects it from servers added by
// plugins.
struct ProfileHold {
  std::vector<std::string> path;  // keys from the top level; "*": any key
  bool forbids = false;           // true: the part must not exist; false: it cannot be changed
  std::string says;               // layer and location of the hold, as text
};
// Returns the first hold on this path ({"mcpServers", "github"}) or on one of its parents, or null
// if there is none.
const ProfileHold *find_hold(const std::vector<ProfileHold> &holds,
                             const std::vector<std::string> &path);

// How requests to a server are handled if their params have members that are not in the MCP schema.
enum class UnknownParams : std::uint8_t { forward, drop, refuse };
std::string_view to_string(UnknownParams value) noexcept;  // as in the profile

struct Profile {
  std::vector<ServerDef> servers;
  std::vector<PluginUse> transports;
  std::vector<PluginUse> tools;     // each is a server, named by its instance id
  std::vector<PluginUse> policies;  // in the order of evaluation
  std::vector<PluginUse> telemetry;
  std::vector<PluginUse> services;                    // loaded at first use
  std::map<std::string, std::string> connectors;      // server type -> plugin name or path
  std::map<std::string, PluginFile> connector_files;  // server type -> file of its plugin
  std::vector<std::string> plugin_dirs;
  Naming naming;
  Expose expose;
  Limits limits;
  Isolation isolation;
  Approvers approval;
  PinRules pins;
  Identity identity;
  std::string server_name = "bulkhead";  // serverInfo.name
  std::string metrics_listen;            // IP:PORT of /metrics over TCP; empty: not served
  UnknownParams unknown_params = UnknownParams::forward;
  std::string state_dir;  // logs, secrets and plugin folders; empty: ~/.local/state/bulkhead
  std::vector<std::string> own_paths;  // files and folders of the gateway, hidden from all servers
  std::vector<std::string> notes;      // warnings for the operator, in order

  // The corporation's holds on mcpServers. They apply to servers added at run time.
  std::vector<ProfileHold> server_holds;

  // Known tool definitions of `servers`. They do not come from the profile's files.
  std::vector<ToolPin> pinned;

  // The mark of `policies`, set by the process that has all policy configurations. If the
  // generation is 0, the host computes the mark from its own profile.
  PolicyMark policy_mark;

  // Every leaf value with the layer from which it came, for `profile show --origin`. Credentials
  // are masked.
  struct Shown {
    std::string path, value;
    Origin origin;
  };
  std::vector<Shown> shown;
};

}  // namespace bulkhead
