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

// Returns the name of a plugin on its compartment's link. The type is part of the name because
// instances of different types may have the same id: the built-in profile has a tool plugin "http"
// and a service "http".
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

// The compartment's permissions, from which its Confinement is built.
struct SlicePrivileges {
  bool network = false, exec = false;
  bool required = false;  // fail if the kernel cannot enforce every part
  // Paths of Unix sockets to which the supervisor connects on behalf of the compartment.
  std::vector<std::string> dial;
  bool stores = false;  // whether its telemetry plugins have a storage folder
  std::vector<std::string> read, write;
  std::vector<std::string> hide;   // with exec: hidden from the programs
  std::uint32_t uid = 0, gid = 0;  // 0: unchanged
  // If `network` is set, these are the TCP ports to which the compartment may connect; empty means
  // all ports.
  std::vector<std::uint16_t> ports;
  bool operator==(const SlicePrivileges &) const = default;
};
template <class Ar>
void archive(Ar &ar, SlicePrivileges &v) {
  auto &[network, exec, required, dial, stores, read, write, hide, uid, gid, ports] = v;
  ar(network, exec, required, dial, stores, read, write, hide, uid, gid, ports);
}

struct Slice {
  std::string name;      // name of the compartment
  bool router = false;   // true for the endpoint. It has a Host; other compartments have plugins
  bool service = false;  // true for the control compartment. It has no plugins and no link
  std::int32_t log_level = 1;
  bool eager = true;                        // router
  std::string sealing_key;                  // router; see HostOptions
  std::uint32_t epoch = 0;                  // router
  std::map<std::string, RemoteUse> remote;  // router: plugins and servers in other processes
  Profile profile;                   // router: without credentials; others: only limits and folders
  std::vector<SlicePlugin> plugins;  // others
  std::map<std::string, std::string> definitions;  // others: server -> definition, with credentials
  SlicePrivileges privileges;
  SecretPrints prints;  // telemetry: credentials to mask
};
template <class Ar>
void archive(Ar &ar, Slice &v) {
  auto &[name, router, service, log_level, eager, sealing_key, epoch, remote, profile, plugins,
         definitions, privileges, prints] = v;
  ar(name, router, service, log_level, eager, sealing_key, epoch, remote, profile, plugins,
     definitions, privileges, prints);
}

// A changed profile for the running router; see Host::apply().
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
