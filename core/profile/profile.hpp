// Defines the profile: the configuration of a process, which is read from TOML or JSON. The reader
// is strict and reports all errors with their locations. Each value records the layer from which it
// came.
//
// Must be used on the control thread. The functions declared here do not use the network or start
// processes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/plugin_trust.hpp"
#include "profile/kept_lists.hpp"
#include "profile/pins.hpp"

namespace bulkhead {

// The location of a value. `line` is 0 if the value does not come from a file.
struct Origin {
  std::string layer;  // ProfileLayer::name, or "default" for defaults in Profile::shown
  std::string file;
  std::uint32_t line = 0;
  bool operator==(const Origin &) const = default;
};

struct ProfileError {
  std::string file;
  std::uint32_t line = 0;    // 0: unknown
  std::uint32_t column = 0;  // 0: unknown
  std::string path;          // for example, "mcpServers.github.env.TOKEN"
  std::string what;          // the error and the allowed values; never contains a credential
  // An error code for programs: "file_not_found", "unreadable", "too_large", "invalid_json",
  // "invalid_toml", "invalid_schema", "unknown_key", "missing_env_var", "locked", "forbidden",
  // "plugin_unusable" or "plugin_config".
  std::string code;
};
// Formats an error for users: "gateway.json:12:7: mcpServers.github.env.TOKEN: ...
// [missing_env_var]".
std::string to_string(const ProfileError &error);

enum class SessionScope : std::uint8_t { shared, per_client };

// How a server obtains MCP roots. off: the gateway does not declare the capability. static_list:
// the gateway responds to roots/list with ServerDef::root_folders. per_client: the client responds,
// and each client that declares roots has its own connection.
enum class RootsMode : std::uint8_t { off, static_list, per_client };
std::string_view to_string(RootsMode mode) noexcept;  // in profile syntax

// The MCP revision that is used to open a connection to a server. automatic: the gateway detects
// which revision the server supports.
enum class ProtocolPin : std::uint8_t {
  automatic,
  v2024_11_05,
  v2025_03_26,
  v2025_06_18,
  v2025_11_25,
  v2026_07_28
};
std::string_view to_string(ProtocolPin pin) noexcept;  // in profile syntax

// How a server's child process is sandboxed. docs/profile.md specifies the modes.
enum class SandboxMode : std::uint8_t { strict, home_read_only, off };
std::string_view to_string(SandboxMode mode) noexcept;  // in profile syntax

struct SandboxRules {
  SandboxMode mode = SandboxMode::home_read_only;
  std::vector<std::string> read, write;  // additional absolute paths
  bool network = true;
  std::uint64_t memory_bytes = 0;                  // 0: no separate limit
  std::uint32_t processes = 1024;                  // counts threads, too
  std::uint64_t cache_bytes = 10u * (1ull << 30);  // disk space of the server's caches; 0: no limit
  // Whether the server shares the machine's System V IPC objects and POSIX message queues.
  bool host_ipc = false;
  bool operator==(const SandboxRules &) const = default;
};

// One upstream server. References such as ${env:NAME} are resolved.
struct ServerDef {
  std::string name;  // [A-Za-z0-9_][A-Za-z0-9_.-]{0,63}; further rules: see refused_name()
  std::string type;  // "stdio", "http", "sse", or a type from [connectors]
  bool disabled = false;
  std::string disabled_reason;  // shown to users; empty: the profile disables the server
  bool unmet = false;           // disabled because a variable is unset or its value is invalid
  // stdio
  std::string command;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;
  std::string cwd;  // empty: the gateway's working directory or a private folder (start_folder.hpp)
  SandboxRules sandbox;
  bool lazy = false;               // the first call, or a request for an unknown list, starts it
  std::uint64_t idle_stop_ms = 0;  // the server is stopped after this time without calls; 0: never
  // Number of child processes that share the calls to pool_safe_tools.
  std::uint32_t pool_size = 1;
  std::vector<std::string> pool_safe_tools;
  // http, sse
  std::string url;
  std::map<std::string, std::string> headers;
  // all types
  std::optional<std::vector<std::string>> allow_tools;  // set but empty: no tool is allowed
  std::vector<std::string> deny_tools;
  std::optional<std::uint64_t> timeout_ms;                // time-out of each request
  std::map<std::string, std::uint64_t> tool_timeouts_ms;  // time-outs by original tool name
  std::optional<std::uint64_t> connect_timeout_ms;
  ProtocolPin protocol = ProtocolPin::automatic;
  SessionScope session = SessionScope::shared;
  std::optional<RootsMode> roots;         // unset: see roots_mode()
  std::vector<std::string> root_folders;  // for static_list: absolute paths
  std::uint32_t max_in_flight = 256;
  std::string compartment;  // "own" or a shared name; empty: its connector's compartment
  Origin origin;
  std::string source;  // the plugin that added the server, shown to users; empty: the profile
  // Members that the core adds to the output of to_json(), for example "stderr_file". The values
  // are JSON text.
  std::map<std::string, std::string> extra;
  KeptLists kept;  // stored lists, if the server is lazy
  // Number of times that `bulkhead mcp restart` has restarted this server since the gateway
  // started. If the number changes, a new connection is required. Not part of to_json().
  std::uint64_t restarts = 0;

  // Returns `roots` if it is set. Otherwise, returns per_client if each client has its own
  // connection, and off if not.
  RootsMode roots_mode() const noexcept {
    const bool own = session == SessionScope::per_client;
    return roots.value_or(own ? RootsMode::per_client : RootsMode::off);
  }

  // Returns the definition for the connector. It is a JSON object with the server's type, command,
  // args, env, cwd, sandbox (only with a command), url, headers and connect_timeout_ms, and the
  // members of `extra`. Empty values are omitted. The object contains credentials.
  std::string to_json() const;

  bool operator==(const ServerDef &) const = default;
};

struct Naming {
  std::string separator = "__";
  bool prefix = true;               // true: "always", false: "never"
  std::string scheme = "bulkhead";  // scheme of composed resource URIs
  bool shorten = true;              // false: a name longer than max_length is an error
  std::uint32_t max_length = 64;
  // If set, server names must match ^[a-z][a-z0-9-]*$, and additional names are reserved.
  bool strict_names = false;
  // Whether an invalid server name is an error. If not, the server is skipped with a note.
  bool bad_names_error = false;
  // Tool aliases, at most max_aliases. The key is the alias, the value the listed name.
  std::map<std::string, std::string, std::less<>> aliases;
  static constexpr std::size_t max_aliases = 256;
  bool operator==(const Naming &) const = default;
};

// Which features of the merged servers clients can use. A disabled feature is not declared, and
// requests for it fail with error -32601.
struct Expose {
  bool tools = true, resources = true, prompts = true, logging = true, completions = true;
  bool list_changed = true, subscribe = true;
  bool operator==(const Expose &) const = default;
};

// The limits of the gateway. docs/limits.md must list the same limits.
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
  std::uint64_t call_timeout_ms = 300'000;    // tools/call and tasks/result
  std::uint64_t request_timeout_ms = 60'000;  // all other requests
  // If call_timeout_ms, request_timeout_ms or a time-out of a server exceeds this value, it is
  // reduced to this value.
  std::uint64_t timeout_ceiling_ms = 300'000;
  std::uint64_t ask_timeout_ms = 600'000;  // for a client's response to a server-initiated request
  std::uint64_t first_list_wait_ms = 5'000;
  std::uint64_t grace_ms = 3'000;  // how long the tools of a disconnected server stay listed
  // When a reload removes or changes a server, its in-flight calls may continue for this long.
  std::uint64_t drain_ms = 5'000;
  std::uint64_t retry_min_ms = 500;
  std::uint64_t retry_max_ms = 30'000;
  std::uint32_t in_flight_per_session = 256;
  // Maximum number of requests that wait for one connection because max_in_flight has been reached
  // or the server has not started.
  std::uint32_t queued_per_server = 1024;
  std::uint32_t asks_per_session = 64;
  std::uint32_t subscriptions_per_session = 1024;
  std::uint32_t listens_per_client = 8;         // open subscriptions/listen requests
  std::uint64_t task_lifetime_ms = 86'400'000;  // how long the client's id of a task is valid
  std::uint32_t items_per_server = 10'000;      // limit for each kind of item
  std::uint64_t list_bytes_per_server = 32ull << 20;
  std::uint32_t page_items = 1000;          // items in one page of a list
  std::uint64_t idle_view_ms = 300'000;     // how long lanes that no client uses are kept
  std::uint64_t policy_timeout_ms = 5'000;  // for one policy decision
  std::uint64_t policy_waiting_bytes = 256ull << 20;
  std::uint64_t approval_timeout_ms = 120'000;  // how long a call waits for approval
  std::uint32_t approvals_waiting = 256;        // number of calls that wait for approval
  std::uint32_t approvals_per_session = 128;
  std::uint64_t approvals_bytes = 64ull << 20;
  std::uint64_t plugin_init_ms = 5'000;
  std::uint64_t stderr_bytes = 1ull << 20;  // size at which a child process's stderr log is rotated
};

// The state that a plugin's library file had when the profile was read. It is set by the program;
// the profile has no key for it.
struct PluginFile {
  std::string mark;        // changes with the file; empty if unknown or if a digest pins the file
  bool exclusive = false;  // from the manifest; comparison ignores it
  // Set if the plugin was swapped at run time: the copy of the library that is used instead of the
  // profile's, and its SHA-256 in hex.
  std::string path = {}, sha256 = {};
  std::string change = {};  // describes the swap for the records; comparison ignores it
  // True if `path` is a copy of a plugin that was installed with the program. Comparison ignores
  // it.
  bool is_program_copy = false;
  bool operator==(const PluginFile &other) const noexcept {
    return mark == other.mark && path == other.path;
  }
};

// One plugin instance.
struct PluginUse {
  std::string id;           // the instance's name: "transport-http", "files"
  std::string plugin;       // the library's name, or a path with a slash
  std::string config_json;  // one JSON object
  std::string sha256;       // pinned digest in hex; empty: not pinned
  bool required = true;     // if false, the program starts even if the plugin cannot be loaded
  bool watch = false;       // swap the plugin when its file changes (tools and policies only)
  // "own", a shared name, or "endpoint" (for policies and telemetry only). If empty, the default
  // applies.
  std::string compartment;
  // Optional permissions: "control", "network[:PORT]".
  std::vector<std::string> grants;
  PluginFile file;
  Origin origin;
  bool operator==(const PluginUse &) const = default;
};

// Return what Library::check() must be called with: the library's name or path, and the digest that
// its file must have.
inline const std::string &library_of(const PluginUse &use) noexcept {
  return use.file.path.empty() ? use.plugin : use.file.path;
}
inline const std::string &digest_of(const PluginUse &use) noexcept {
  return use.file.path.empty() ? use.sha256 : use.file.sha256;
}

// Returns the port of a network grant: PORT for "network:PORT", and 0 for "network", which allows
// any port. Returns nullopt for other grants.
std::optional<std::uint16_t> granted_port(std::string_view grant);

// Identifies the policies and rules that are in force; see profile/policy_mark.hpp.
struct PolicyMark {
  std::uint64_t generation = 0;  // starts at 1 when the gateway starts; 0: unknown
  // Two processes have the same digest if their policies and rules are equal.
  std::string digest;
  std::uint32_t rules = 0;           // number of named rules in all layers
  std::vector<std::string> changes;  // differences from the previous generation, as text
  bool operator==(const PolicyMark &) const = default;
};

struct Isolation {
  // If false, the gateway starts even if the kernel lacks a feature, and reports the missing
  // feature.
  bool require = false;
};

// Who can approve calls, in addition to a terminal that watches approval requests.
struct Approvers {
  bool elicitation = false;  // the client itself, through MCP elicitation
  bool api = false;          // the service API, even if no terminal is watching
  bool operator==(const Approvers &) const = default;
};

// The owner of the gateway, as stored in the session database. The loader sets it; the profile has
// no key for it.
struct Identity {
  std::string profile, user;
};

// Protects a part of the profile from changes. The corporation's layer protects parts from higher
// layers and from changes at run time. editable.mcpServers = false in another layer protects
// mcpServers only from other files, including the file to which the service API adds servers.
struct ProfileHold {
  std::vector<std::string> path;  // keys from the top level; "*": any key
  bool forbids = false;           // true: the part must not exist; false: it must not be changed
  std::string says;               // the layer and location that define the hold, as text
};
// Returns the first hold that applies to a path, such as {"mcpServers", "github"}, or to one of its
// parents. Returns null if there is none.
const ProfileHold *find_hold(const std::vector<ProfileHold> &holds,
                             const std::vector<std::string> &path);

// What happens to request params that are not in the MCP schema: the params are forwarded or
// dropped, or the request is rejected.
enum class UnknownParams : std::uint8_t { forward, drop, refuse };
std::string_view to_string(UnknownParams value) noexcept;  // in profile syntax

struct Profile {
  std::vector<ServerDef> servers;
  std::vector<PluginUse> transports;
  std::vector<PluginUse> tools;     // each instance is a server with the instance's name
  std::vector<PluginUse> policies;  // in evaluation order
  std::vector<PluginUse> telemetry;
  std::vector<PluginUse> services;                    // loaded on first use
  std::map<std::string, std::string> connectors;      // plugin name or path by server type
  std::map<std::string, PluginFile> connector_files;  // plugin file by server type
  std::vector<std::string> plugin_dirs;
  PluginTrust plugin_trust;
  Naming naming;
  Expose expose;
  Limits limits;
  Isolation isolation;
  Approvers approval;
  PinRules pins;
  Identity identity;
  std::string server_name = "bulkhead";  // serverInfo.name
  // IP:PORT on which /metrics is served; empty: not served over TCP.
  std::string metrics_listen;
  UnknownParams unknown_params = UnknownParams::forward;
  // The folder for logs, secrets and plugin data. Empty: the program chooses the default.
  std::string state_dir;
  std::vector<std::string> own_paths;  // the gateway's files and folders, hidden from all servers
  // The gateway's executable and plugins, and the folders of plugins. No server may change them.
  std::vector<std::string> programs;
  // Paths of both kinds that are named by settings that need a restart; see protected_paths.hpp.
  std::vector<std::string> fixed_own_paths, fixed_programs;
  // Paths of both kinds that only the former profile names, while a reload is in progress.
  std::vector<std::string> left_paths;
  // The identities of the folders that are or contain one of these paths, and the symbolic links
  // that lead to them, by path; see note_protected_folders().
  std::map<std::string, std::string> protected_folders;
  std::vector<std::string> notes;  // warnings for the operator, in order of occurrence

  // The corporation's holds on mcpServers, which also apply to servers that are added at run time.
  std::vector<ProfileHold> server_holds;

  // The known tool definitions of `servers`. They do not come from the profile's files.
  std::vector<ToolPin> pinned;

  // The mark of `policies`. It is set by the process that has the configurations of all policies.
  // If its generation is 0, the host computes the mark from its own profile.
  PolicyMark policy_mark;

  // All leaf values, each with the layer that it comes from, for `profile show --origin`.
  // Credentials are masked.
  struct Shown {
    std::string path, value;
    Origin origin;
  };
  std::vector<Shown> shown;
};

}  // namespace bulkhead
