#include "supervisor/plan.hpp"

#include <sodium.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/url.hpp"
#include "common/paths.hpp"
#include "embed/profile_prints.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "profile/protected_paths.hpp"
#include "sources/judge_places.hpp"
#include "supervisor/egress.hpp"
#include "swap/plugin_store.hpp"

namespace bulkhead::program {
namespace {

// Assigns compartments to the connectors and tools plugins of this distribution. Any other
// connector or tools plugin has a compartment that is named after the plugin's instance. Connectors
// always have network access because they connect to servers; third-party tools plugins need a
// "network" grant.
struct Role {
  std::string_view plugin, compartment;
  bool network, exec;
  std::uint32_t uid;  // user ID if the program was started as root; 0: root without capabilities
};
// Debian allocates the user IDs 60000 to 64999 centrally (Debian policy 9.2.2), so no system
// assigns them dynamically. Each role has its own ID.
constexpr std::uint32_t first_uid = 62'840;
constexpr Role roles[] = {
    {"connector-http", "aggregator", true, false, first_uid + 1},
    {"connector-stdio", "launcher", true, true, 0},
    {"builtin-http", "web", true, false, first_uid + 2},
    // This compartment switches to the user that owns the workspace.
    {"builtin-files", "files", false, false, 0},
};
constexpr std::uint32_t endpoint_uid = first_uid, other_uid = first_uid + 3,
                        control_uid = first_uid + 4;
// Roles for policies and telemetry plugins that run outside the endpoint and are not listed in
// egress.cpp. Telemetry plugins run as the user that started the program, because stored telemetry
// belongs to this user and other users cannot access its directories.
constexpr Role policy_role{"", "policy", false, false, first_uid + 5};
constexpr Role telemetry_role{"", "telemetry", false, false, 0};
// Roles for plugins of this distribution that connect to other hosts (see egress.hpp).
constexpr Role egress_policy_role{"", "egress.policy", false, false, first_uid + 6};
constexpr Role egress_telemetry_role{"", "egress.telemetry", false, false, first_uid + 7};

const Role *role_of(std::string_view plugin) {
  const auto at = std::find_if(std::begin(roles), std::end(roles),
                               [&](const Role &role) { return role.plugin == plugin; });
  return at == std::end(roles) ? nullptr : at;
}

// The directories in the configuration of builtin-files.
struct FilesFolders {
  std::vector<std::string> read, write;
  bool resolved = false;  // by resolve_file_folders()
};

FilesFolders folders_of_files(std::string_view config) {
  FilesFolders out;
  std::string scratch;
  // Returns the string member `key` of an object, or an empty string if there is none.
  const auto text_at = [&](std::string_view object, const char *key) {
    const std::string_view value = mcp::member(object, key);
    return std::string(value.starts_with('"') ? mcp::unquote(value, &scratch) : "");
  };
  const auto add = [&](std::string_view object, const std::string &path) {
    (mcp::member(object, "write") == "true" ? out.write : out.read).push_back(path);
  };
  const std::string_view many = mcp::member(config, "workspaces");
  if (many.starts_with('[')) {
    mcp::for_each_item(many, [&](std::string_view item) { add(item, text_at(item, "path")); });
  } else {
    const std::string path = text_at(config, "path");
    add(config, path.empty() ? "." : path);
  }
  const std::string snapshots = text_at(mcp::member(config, "snapshots"), "path");
  if (!snapshots.empty()) out.write.push_back(snapshots);
  out.resolved = mcp::member(config, "resolved") == "true";
  return out;
}

// Returns true if the user can enter the directory: each parent directory must be open to all users
// or belong to this user.
bool reachable(const std::filesystem::path &folder, uid_t uid) {
  for (std::filesystem::path above = folder; above.has_relative_path();) {
    above = above.parent_path();
    struct stat about{};
    if (::stat(above.c_str(), &about) != 0) return false;
    const bool own = about.st_uid == uid && (about.st_mode & S_IXUSR) != 0;
    if (!own && (about.st_mode & S_IXOTH) == 0) return false;
  }
  return true;
}

// Returns the user that owns all directories, and the group of the last directory. Returns nullopt
// if the owners differ, if root is an owner, or if a directory is missing or its owner cannot enter
// it.
std::optional<std::pair<uid_t, gid_t>> owner_of(const std::vector<std::string> &folders) {
  std::optional<std::pair<uid_t, gid_t>> owner;
  for (const std::string &folder : folders) {
    std::error_code error;
    const auto path = std::filesystem::canonical(folder, error);
    struct stat about{};
    if (error || ::stat(path.c_str(), &about) != 0 || about.st_uid == 0) return std::nullopt;
    if (owner && owner->first != about.st_uid) return std::nullopt;
    if (!reachable(path, about.st_uid)) return std::nullopt;
    owner = {about.st_uid, about.st_gid};
  }
  return owner;
}

// Returns a keyed hash of a definition. With the hash, the endpoint can detect that the definition
// has changed without knowing the definition itself.
std::string fingerprint(const std::string &definition, const std::string &key) {
  unsigned char hash[16];
  crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char *>(definition.data()),
                     definition.size(), reinterpret_cast<const unsigned char *>(key.data()),
                     key.size());
  char hex[2 * sizeof hash + 1];
  sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
  return hex;
}

// Returns the part of a server's definition that the endpoint needs. It is not sufficient to start
// or reach the server.
ServerDef without_credentials(const ServerDef &def, const PlanFacts &facts) {
  ServerDef out = def;
  out.extra.clear();
  out.extra["definition"] = '"' + fingerprint(def.to_json(), facts.fingerprint_key) + '"';
  out.command.clear();
  out.args.clear();
  out.env.clear();
  out.cwd.clear();
  out.sandbox = {};
  out.url.clear();
  out.headers.clear();
  return out;
}

std::string definition_of(const Profile &profile, const ServerDef &def) {
  ServerDef copy = def;
  if (!profile.state_dir.empty()) {
    std::string quoted = bh::json::quoted(profile.state_dir + "/log/servers/" + def.name + ".log");
    copy.extra["stderr_file"] = quoted;
    copy.extra["stderr_bytes"] = std::to_string(profile.limits.stderr_bytes);
  }
  return copy.to_json();
}

// Returns the compartment name for a third-party plugin. Even if the plugin has the same name as a
// compartment of this distribution, it must not run in that compartment.
std::string name_of_own(const std::string &id) {
  const std::string_view first = std::string_view(id).substr(0, id.find('.'));
  const bool ours = first == "supervisor" || first == "endpoint" || first == "control" ||
                    first == "plugin" || first == "egress" || first == policy_role.compartment ||
                    first == telemetry_role.compartment ||
                    std::any_of(std::begin(roles), std::end(roles),
                                [&](const Role &role) { return role.compartment == first; });
  return ours ? "plugin." + id : id;
}

// Returns the name of a plugin's compartment. Plugins with different privileges never share one,
// even if the profile assigns the same name.
std::string compartment_name(const Role *role, const PluginUse &use, const std::string &wanted,
                             const std::string &owner) {
  std::string usual = role != nullptr ? std::string(role->compartment) : name_of_own(use.id);
  if (wanted.empty()) return usual;
  return usual + "." + (wanted == "own" ? owner : wanted);
}

// Returns the TCP ports that are needed to reach a server: the port in its URL, and those for
// redirects and name resolution. If a proxy is configured or the URL is invalid, returns no ports,
// which means that there is no restriction.
std::vector<std::uint16_t> ports_of(std::string_view url) {
  for (const char *name :
       {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"}) {
    if (const char *value = std::getenv(name); value != nullptr && *value != '\0') return {};
  }
  std::vector<std::uint16_t> out = {53, 80, 443};
  const auto parts = bh::split_url(url);
  if (!parts) return {};
  if (parts->port.empty()) return out;
  const std::uint16_t port = bh::port_of(*parts);
  if (port == 0) return {};
  if (std::find(out.begin(), out.end(), port) == out.end()) out.push_back(port);
  return out;
}

class Planner {
 public:
  Planner(const Profile &profile, const PlanFacts &facts) : profile_(profile), facts_(facts) {}

  std::vector<Slice> plan() {
    Slice endpoint;
    endpoint.name = "endpoint";
    endpoint.router = true;
    endpoint.log_level = facts_.log_level;
    endpoint.eager = facts_.eager;
    endpoint.privileges.required = profile_.isolation.require;
    if (facts_.is_root) endpoint.privileges.uid = endpoint.privileges.gid = endpoint_uid;
    slices_.push_back(std::move(endpoint));
    if (facts_.service) slices_.push_back(control_slice());
    for (const ServerDef &def : profile_.servers) add_server(def);
    for (const PluginUse &use : profile_.tools) add_tools(use);
    Profile visible = profile_;
    for (PluginUse &use : visible.policies) {
      const Role &role = calls_out(use.plugin) ? egress_policy_role : policy_role;
      add_judge(PluginKind::policy, role, "policies", &use);
    }
    for (PluginUse &use : visible.telemetry) {
      const Role &role = calls_out(use.plugin) ? egress_telemetry_role : telemetry_role;
      add_judge(PluginKind::telemetry, role, "telemetry", &use);
    }
    for (ServerDef &def : visible.servers) def = without_credentials(def, facts_);
    visible.services.clear();
    visible.state_dir.clear();  // the endpoint has no access to the state directory
    visible.own_paths.clear();
    visible.programs.clear();
    visible.fixed_own_paths.clear();
    visible.fixed_programs.clear();
    visible.left_paths.clear();
    visible.protected_folders.clear();
    visible.shown.clear();
    visible.notes.clear();
    slices_.front().profile = std::move(visible);
    return std::move(slices_);
  }

 private:
  // Returns the slice for a plugin, and creates the slice if it does not exist. `wanted` is the
  // compartment that the profile assigns; if it is "own", the private compartment is named after
  // `owner`.
  Slice &place(PluginKind kind, const PluginUse &use, const std::string &wanted,
               const std::string &owner) {
    const Role *role = role_of(use.plugin);
    const std::string name = compartment_name(role, use, wanted, owner);
    auto at = std::find_if(slices_.begin() + 1, slices_.end(),
                           [&](const Slice &slice) { return slice.name == name; });
    if (at == slices_.end()) {
      at = slices_.insert(at, new_slice(name, role));
      if (role == nullptr) grant_network(use, &at->privileges);
      if (kind == PluginKind::connector) at->privileges.network = true;
    }
    add_once(*at, kind, use);
    return *at;
  }

  static void grant_network(const PluginUse &use, SlicePrivileges *may) {
    bool any = false;
    for (const std::string &grant : use.grants) {
      const auto port = granted_port(grant);
      if (!port) continue;
      may->network = true;
      any = any || *port == 0;
      may->ports.push_back(*port);
    }
    if (any) may->ports.clear();
  }

  static void add_once(Slice &slice, PluginKind kind, const PluginUse &use) {
    const bool there =
        std::any_of(slice.plugins.begin(), slice.plugins.end(),
                    [&](const SlicePlugin &p) { return p.kind == kind && p.use.id == use.id; });
    if (!there) slice.plugins.push_back({kind, use});
  }

  // The control compartment communicates with clients of the service socket and with the
  // supervisor. It receives no part of the profile except limits.
  Slice control_slice() const {
    Slice slice;
    slice.name = "control";
    slice.service = true;
    slice.log_level = facts_.log_level;
    slice.profile.limits = profile_.limits;
    slice.privileges.required = profile_.isolation.require;
    if (facts_.is_root) slice.privileges.uid = slice.privileges.gid = control_uid;
    return slice;
  }

  Slice new_slice(const std::string &name, const Role *role) const {
    Slice slice;
    slice.name = name;
    slice.log_level = facts_.log_level;
    slice.profile.limits = profile_.limits;
    slice.profile.plugin_dirs = profile_.plugin_dirs;
    slice.profile.plugin_trust = profile_.plugin_trust;
    slice.profile.state_dir = profile_.state_dir;
    slice.profile.isolation = profile_.isolation;
    SlicePrivileges &may = slice.privileges;
    may.required = profile_.isolation.require;
    may.network = role != nullptr && role->network;
    may.exec = role != nullptr && role->exec;
    const std::uint32_t uid = role == nullptr ? other_uid : role->uid;
    if (facts_.is_root) may.uid = may.gid = uid;
    if (may.exec) {
      slice.profile.own_paths = all_own_paths(profile_);
      slice.profile.programs = all_programs(profile_);
      slice.profile.protected_folders = profile_.protected_folders;
      may.hide = control_dirs();
      may.hide.push_back(profile_.state_dir + "/secrets");
      may.hide.push_back(profile_.state_dir + std::string(plugin_store_folder));
      if (!profile_.telemetry.empty()) {
        for (const std::string_view folder : record_folders) {
          may.hide.push_back(profile_.state_dir + std::string(folder));
        }
      }
    }
    return slice;
  }

  void add_server(const ServerDef &def) {
    const auto connector = profile_.connectors.find(def.type);
    if (def.disabled || connector == profile_.connectors.end()) return;
    PluginUse use;
    const std::size_t slash = connector->second.rfind('/');
    use.id = slash == std::string::npos ? connector->second : connector->second.substr(slash + 1);
    use.plugin = connector->second;
    use.config_json = "{}";
    use.required = false;
    Slice &slice = place(PluginKind::connector, use, def.compartment, def.name);
    slice.definitions[def.name] = definition_of(profile_, def);
    if (def.compartment == "own" && use.plugin == "connector-http") {
      slice.privileges.ports = ports_of(def.url);
    }
    add_services(slice);
    slices_.front().remote[def.name] = {slice.name, use.id};
  }

  void add_tools(const PluginUse &use) {
    Slice &slice = place(PluginKind::tools, use, use.compartment, use.id);
    if (use.plugin == "builtin-files") {
      SlicePrivileges &may = slice.privileges;
      FilesFolders folders = folders_of_files(use.config_json);
      if (folders.resolved) may.symlinks = false;
      may.read.insert(may.read.end(), folders.read.begin(), folders.read.end());
      may.write.insert(may.write.end(), folders.write.begin(), folders.write.end());
      if (facts_.is_root) {
        std::vector<std::string> all = may.read;
        all.insert(all.end(), may.write.begin(), may.write.end());
        const auto [uid, gid] = owner_of(all).value_or(std::pair(0u, 0u));
        slice.privileges.uid = uid;
        slice.privileges.gid = gid;
      }
    }
    add_services(slice);
    slices_.front().remote[use.id] = {slice.name, link_name(PluginKind::tools, use.id)};
  }

  // Adds a policy or telemetry plugin. It runs in the endpoint or in a compartment without other
  // plugins, except services. `use` is the endpoint's entry for the plugin.
  void add_judge(PluginKind kind, const Role &role, std::string_view group, PluginUse *use) {
    if (runs_in_endpoint(*use)) return;
    const std::string usual(role.compartment);
    Slice slice = new_slice(use->id == usual ? usual : usual + "." + use->id, &role);
    slice.privileges.stores = &role == &telemetry_role;
    if (calls_out(use->plugin)) {
      allow_egress(use->config_json, &slice.privileges);
    } else {
      grant_network(*use, &slice.privileges);
    }
    slice.plugins.push_back({kind, *use});
    if (kind == PluginKind::telemetry) {
      slice.prints = prints_of(profile_, facts_.fingerprint_key);
    }
    add_services(slice);
    slices_.front().remote[remote_name(group, use->id)] = {slice.name, use->id};
    use->config_json = "{}";
    slices_.push_back(std::move(slice));
  }

  // Adds the HTTP client to a compartment that may connect to other hosts.
  void add_services(Slice &slice) const {
    const SlicePrivileges &may = slice.privileges;
    if ((!may.network && may.dial.empty()) || may.exec) return;
    for (const PluginUse &use : profile_.services) add_once(slice, PluginKind::service, use);
  }

  const Profile &profile_;
  const PlanFacts &facts_;
  std::vector<Slice> slices_;
};

}  // namespace

std::string random_key() {
  std::string key(crypto_generichash_KEYBYTES, '\0');
  randombytes_buf(key.data(), key.size());
  return key;
}

std::vector<Slice> plan_compartments(const Profile &profile, const PlanFacts &facts) {
  return Planner(profile, facts).plan();
}

}  // namespace bulkhead::program
