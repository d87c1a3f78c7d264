// The slice: the part of the profile that the supervisor sends to a compartment.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/archive.hpp"
#include "host.hpp"
#include "plugin/secret_prints.hpp"
#include "profile/archive.hpp"

namespace bulkhead {

enum class PluginKind : std::uint8_t { connector, tools, service, policy, telemetry };

struct SlicePlugin {
  PluginKind kind = PluginKind::connector;
  PluginUse use;
};

// Returns the name that identifies a plugin on the link to its compartment. For tools and services,
// the name contains the kind, because they may have the same ID: the built-in profile has a tools
// plugin "http" and a service "http".
inline std::string link_name(PluginKind kind, const std::string &id) {
  if (kind == PluginKind::tools) return "tools/" + id;
  return kind == PluginKind::service ? "services/" + id : id;
}

template <class Ar>
void archive(Ar &ar, SlicePlugin &v) {
  auto &[kind, use] = v;
  ar(kind, use);
}

template <class Ar>
void archive(Ar &ar, RemoteUse &v) {
  auto &[compartment, plugin] = v;
  ar(compartment, plugin);
}

// A compartment's permissions, from which its Confinement is built.
struct SlicePrivileges {
  bool network = false, exec = false;
  bool required = false;  // fail if the kernel cannot enforce the whole confinement
  // Unix sockets to which the supervisor connects on behalf of the compartment.
  std::vector<std::string> dial;
  bool stores = false;  // the telemetry plugins get storage folders
  std::vector<std::string> read, write;
  bool symlinks = true;  // false: the paths in `read` and `write` must not contain symbolic links
  std::vector<std::string> hide;   // paths hidden from child programs; used only if `exec` is set
  std::uint32_t uid = 0, gid = 0;  // 0: unchanged
  // The TCP ports to which the compartment may connect; empty means all ports. Used only if
  // `network` is set.
  std::vector<std::uint16_t> ports;
  bool operator==(const SlicePrivileges &) const = default;
};
template <class Ar>
void archive(Ar &ar, SlicePrivileges &v) {
  auto &[network, exec, required, dial, stores, read, write, symlinks, hide, uid, gid, ports] = v;
  ar(network, exec, required, dial, stores, read, write, symlinks, hide, uid, gid, ports);
}

struct Slice {
  std::string name;
  bool router = false;   // the endpoint, which runs a Host instead of plugins
  bool service = false;  // the control compartment, which has no plugins and no link
  std::int32_t log_level = 1;
  bool eager = true;                        // endpoint
  std::string sealing_key;                  // endpoint; see HostOptions
  std::uint32_t epoch = 0;                  // endpoint; see HostOptions
  std::map<std::string, RemoteUse> remote;  // endpoint: servers and plugins in other processes
  // Endpoint: the profile without credentials. Others: only limits, isolation, folders and paths.
  Profile profile;
  std::vector<SlicePlugin> plugins;  // all except the endpoint and the control compartment
  // in all compartments except the endpoint: the servers' definitions, including credentials, by
  // server name
  std::map<std::string, std::string> definitions;
  SlicePrivileges privileges;
  SecretPrints prints;  // telemetry: keyed hashes of the credentials to mask
  // The plugins are loaded, created and configured, but not started, to find out if they can be.
  bool trial = false;
};
template <class Ar>
void archive(Ar &ar, Slice &v) {
  auto &[name, router, service, log_level, eager, sealing_key, epoch, remote, profile, plugins,
         definitions, privileges, prints, trial] = v;
  ar(name, router, service, log_level, eager, sealing_key, epoch, remote, profile, plugins,
     definitions, privileges, prints, trial);
}

// Settings for connections that a compartment opens, and servers that it starts, after it has
// received these settings.
struct ServerSettings {
  std::map<std::string, std::string> definitions;  // see Slice
  std::vector<std::string> own_paths, programs;    // see Profile
  bool operator==(const ServerSettings &) const = default;
};
template <class Ar>
void archive(Ar &ar, ServerSettings &v) {
  auto &[definitions, own_paths, programs] = v;
  ar(definitions, own_paths, programs);
}

// The changed profile that a running endpoint applies; see Host::apply().
struct Apply {
  Profile profile;
  std::map<std::string, RemoteUse> remote;
};
template <class Ar>
void archive(Ar &ar, Apply &v) {
  auto &[profile, remote] = v;
  ar(profile, remote);
}

}  // namespace bulkhead
