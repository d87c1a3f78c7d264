#include "profile/difference.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "profile/protected_paths.hpp"
#include "profile/settings.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view restart = ": needs a restart";
constexpr std::string_view file_restart = ": file changed; needs a restart";
constexpr std::string_view file_lost =
    ": file is missing or not a plugin; the old version runs until a restart";

// Limits that a reload cannot change, because plugins hold pointers to them or have copied them.
// stderr_bytes is part of each server's definition, which the connector has already received.
constexpr std::string_view fixed_limits[] = {
    "message_bytes",      "header_bytes",      "sessions",       "session_idle_ms",
    "event_buffer_bytes", "write_queue_bytes", "write_stall_ms", "connect_timeout_ms",
    "request_read_ms",    "shutdown_grace_ms", "stderr_bytes"};

// Returns a message that says which policy remains in force until the restart, so that users do not
// assume that the new one already applies.
std::string until_restart(const PluginUse *was, const PluginUse *is) {
  if (was == nullptr) return "; it is not used until then";
  if (is == nullptr) return "; it stays in force until then";
  if (was->plugin == is->plugin) return "; the old configuration stays in force until then";
  return "; until then, " + profiles::in_quotes(was->plugin) + " stays in force instead of " +
         profiles::in_quotes(is->plugin);
}

const PluginUse *find(const std::vector<PluginUse> &uses, const std::string &id) {
  const auto at =
      std::find_if(uses.begin(), uses.end(), [&](const PluginUse &use) { return use.id == id; });
  return at == uses.end() ? nullptr : &*at;
}

// Returns the entry of `uses` that has the same ID and the same plugin as `use`, or null.
const PluginUse *find_same(const std::vector<PluginUse> &uses, const PluginUse &use) {
  const PluginUse *was = find(uses, use.id);
  return was != nullptr && was->plugin == use.plugin ? was : nullptr;
}

// A file that cannot be read (empty mark) does not count as changed.
bool file_differs(const PluginFile &was, const PluginFile &is) {
  return was.path != is.path || (!is.mark.empty() && was.mark != is.mark);
}

// Returns false if no plugin instance has a mark, which means that the caller has not checked the
// plugin files.
bool has_marks(const Profile &profile) {
  const auto has = [](const std::vector<PluginUse> &uses) {
    return std::any_of(uses.begin(), uses.end(),
                       [](const PluginUse &use) { return !use.file.mark.empty(); });
  };
  return has(profile.tools) || has(profile.transports) || has(profile.policies) ||
         has(profile.telemetry) || has(profile.services);
}

// A file that is pinned by a digest has no mark either, but it is not lost.
bool is_lost(const PluginFile &was, const PluginUse &use, const PluginFile &is) {
  return !was.mark.empty() && is.mark.empty() && use.sha256.empty();
}

void keep_unknown_files(const std::vector<PluginUse> &now, std::vector<PluginUse> *next,
                        std::vector<std::string> *out) {
  for (PluginUse &use : *next) {
    const PluginUse *was = find_same(now, use);
    if (was == nullptr || !use.file.mark.empty()) continue;
    if (is_lost(was->file, use, use.file)) {
      out->push_back("tools." + use.id + std::string(file_lost));
    }
    // If the profile pins a file now, the plugin is no longer swapped.
    const bool swap_ends = !use.sha256.empty() && !was->file.path.empty();
    use.file = swap_ends ? PluginFile{"", was->file.exclusive} : was->file;
  }
}

// If a plugin cannot be replaced at run time, its current file stays in use.
void keep_fixed_files(std::string_view group, const std::vector<PluginUse> &now,
                      std::vector<PluginUse> *next, std::vector<std::string> *out) {
  for (PluginUse &use : *next) {
    const PluginUse *was = find_same(now, use);
    if (was == nullptr) continue;
    const PluginFile file = std::exchange(use.file, was->file);
    if (is_lost(was->file, use, file)) {
      out->push_back(std::string(group) + "." + use.id + std::string(file_lost));
    }
    if (!file_differs(was->file, file)) continue;
    out->push_back(std::string(group) + "." + use.id + std::string(file_restart) +
                   (group == "policies" ? "; the old version stays in force until then" : ""));
  }
}

// A policy or telemetry plugin in a compartment can be swapped. Its file is then a stored copy,
// which has a path. The swap ends if the profile names another file, but not if it only states a
// digest. Returns the plugins that get another file, and gives them their current one, so that they
// are not reported.
using Swapped = std::vector<std::pair<std::string, PluginFile>>;
Swapped extract_swaps(const std::vector<PluginUse> &now, std::vector<PluginUse> *next) {
  Swapped out;
  for (PluginUse &use : *next) {
    const PluginUse *was = find_same(now, use);
    if (was == nullptr || !file_differs(was->file, use.file)) continue;
    const bool ends = !was->file.path.empty() && !use.file.mark.empty() && use.sha256.empty();
    if (use.file.path.empty() && !ends) continue;
    out.emplace_back(use.id, std::exchange(use.file, was->file));
  }
  return out;
}

void put_back(const Swapped &swapped, std::vector<PluginUse> *uses) {
  for (const auto &[id, file] : swapped) {
    for (PluginUse &use : *uses) {
      if (use.id == id) use.file = file;
    }
  }
}

void keep_connector_files(const Profile &now, Profile *next, std::vector<std::string> *out) {
  for (const auto &[type, was] : now.connector_files) {
    const auto plugin = now.connectors.find(type);
    const auto next_plugin = next->connectors.find(type);
    const bool same = plugin != now.connectors.end() && next_plugin != next->connectors.end() &&
                      plugin->second == next_plugin->second;
    const PluginFile is = std::exchange(next->connector_files[type], was);
    if (same && file_differs(was, is)) {
      out->push_back("connectors." + type + std::string(file_restart));
    } else if (same && !was.mark.empty() && is.mark.empty()) {
      out->push_back("connectors." + type + std::string(file_lost));
    }
  }
}

void keep_uses(std::string_view group, const std::vector<PluginUse> &now,
               std::vector<PluginUse> *next, std::vector<std::string> *out) {
  const auto note = [&](const PluginUse *was, const PluginUse *is) {
    const std::string &id = (was == nullptr ? is : was)->id;
    out->push_back(std::string(group) + "." + id + std::string(restart) +
                   (group == "policies" ? until_restart(was, is) : ""));
  };
  const std::size_t before = out->size();
  for (const PluginUse &use : *next) {
    const PluginUse *was = find(now, use.id);
    if (was == nullptr || !same_use(*was, use)) note(was, &use);
  }
  for (const PluginUse &use : now) {
    if (find(*next, use.id) == nullptr) note(&use, nullptr);
  }
  const auto same_id = [](const PluginUse &a, const PluginUse &b) { return a.id == b.id; };
  // The order of policies matters because they are evaluated in order.
  const bool same_order = group != "policies" ||
                          std::equal(now.begin(), now.end(), next->begin(), next->end(), same_id);
  if (out->size() == before && !same_order) {
    out->push_back("policies: order changed" + std::string(restart));
  }
  *next = now;
}

void keep_limits(const Limits &now, Limits *next, std::vector<std::string> *out) {
  for (const profiles::Key<Limits> &key : profiles::limit_keys()) {
    const bool fixed = std::find(std::begin(fixed_limits), std::end(fixed_limits), key.name) !=
                       std::end(fixed_limits);
    if (!fixed || key.show(key, now) == key.show(key, *next)) continue;
    out->push_back("limits." + std::string(key.name) + std::string(restart));
    key.copy(now, *next);
  }
}

// Returns the plugins in *next that differ from the running plugins only in their configuration. In
// *next, the running configuration of these plugins is restored.
std::vector<PluginUse> extract_reloads(const std::vector<PluginUse> &now,
                                       std::vector<PluginUse> *next) {
  std::vector<PluginUse> out;
  for (PluginUse &use : *next) {
    for (const PluginUse &was : now) {
      PluginUse same = use;
      same.config_json = was.config_json;
      if (same.config_json == use.config_json || !same_use(was, same)) continue;
      out.push_back(std::exchange(use, std::move(same)));
      break;
    }
  }
  return out;
}

// In *next, restores the connector of each server type that already exists, because a reload can
// only add server types. Returns true if there was a difference.
bool keep_connectors(const Profile &now, Profile *next, std::vector<std::string> *out) {
  bool any = false;
  for (const auto &[type, plugin] : now.connectors) {
    std::string &is = next->connectors[type];
    if (is == plugin) continue;
    is = plugin;
    out->push_back("connectors." + type + std::string(restart));
    any = true;
  }
  return any;
}

}  // namespace

bool same_server(const ServerDef &was, const ServerDef &is) {
  ServerDef a = was, b = is;
  a.origin = b.origin = {};
  return a == b;
}

bool same_wire(const ServerDef &was, const ServerDef &is) {
  ServerDef a = was, b = is;
  // Clears the members that do not affect the connection. All remaining differences require a new
  // connection.
  for (ServerDef *def : {&a, &b}) {
    def->allow_tools.reset();
    def->deny_tools.clear();
    def->timeout_ms.reset();
    def->tool_timeouts_ms.clear();
    def->connect_timeout_ms.reset();
    def->max_in_flight = 0;
    def->root_folders.clear();
    def->source.clear();
  }
  return same_server(a, b);
}

bool same_use(const PluginUse &was, const PluginUse &is) {
  PluginUse a = was, b = is;
  a.origin = b.origin = {};
  return a == b;
}

std::vector<std::string> changed_settings(const Profile &was, const Profile &is) {
  std::vector<std::string> out;
  const auto note = [&](bool same, std::string_view name) {
    if (!same) out.emplace_back(name);
  };
  note(was.naming == is.naming, "naming");
  note(was.expose == is.expose, "expose");
  note(was.approval == is.approval, "approval");
  note(was.pins == is.pins, "pins");
  const PluginTrust &trusted = was.plugin_trust, &trusts = is.plugin_trust;
  note(trusted.trusted_keys == trusts.trusted_keys, "plugin_trust.trusted_keys");
  note(trusted.require_signatures == trusts.require_signatures, "plugin_trust.require_signatures");
  note(trusted.revoked_keys == trusts.revoked_keys, "plugin_trust.revoked_keys");
  note(trusted.revoked_digests == trusts.revoked_digests, "plugin_trust.revoked_digests");
  note(was.server_name == is.server_name, "gateway.name");
  note(was.unknown_params == is.unknown_params, "gateway.unknown_params");
  for (const profiles::Key<Limits> &key : profiles::limit_keys()) {
    note(key.show(key, was.limits) == key.show(key, is.limits), "limits." + std::string(key.name));
  }
  return out;
}

std::vector<const PluginUse *> with_changed_files(const std::vector<PluginUse> &was,
                                                  const std::vector<PluginUse> &is) {
  std::vector<const PluginUse *> out;
  for (const PluginUse &use : is) {
    const PluginUse *before = find_same(was, use);
    if (before != nullptr && file_differs(before->file, use.file)) out.push_back(&use);
  }
  return out;
}

std::vector<std::string> changed_files(std::string_view group, const std::vector<PluginUse> &was,
                                       const std::vector<PluginUse> &is) {
  std::vector<std::string> out;
  for (const PluginUse *use : with_changed_files(was, is)) {
    out.push_back(std::string(group) + "." + use->id + ": file changed; new version runs");
  }
  return out;
}

std::vector<std::string> keep_files(const std::vector<PluginUse> &now, std::vector<PluginUse> *next,
                                    const std::function<bool(const PluginUse &)> &here) {
  std::vector<std::string> out;
  for (PluginUse &use : *next) {
    const PluginUse *was = find_same(now, use);
    if (was == nullptr || !here(use) || !file_differs(was->file, use.file)) continue;
    PluginUse same = use;
    same.file = was->file;
    // If the plugin has other changes, it is reloaded from its new file.
    if (!same_use(*was, same)) continue;
    use = std::move(same);
    out.push_back("tools." + use.id + std::string(file_restart));
  }
  return out;
}

std::vector<std::string> keep_fixed(const Profile &now, Profile *next, bool reload_policies) {
  std::vector<std::string> out;
  const bool checked = has_marks(*next);
  const auto policies = extract_swaps(now.policies, &next->policies);
  const auto telemetry = extract_swaps(now.telemetry, &next->telemetry);
  keep_unknown_files(now.tools, &next->tools, &out);
  keep_fixed_files("transports", now.transports, &next->transports, &out);
  keep_fixed_files("policies", now.policies, &next->policies, &out);
  keep_fixed_files("telemetry", now.telemetry, &next->telemetry, &out);
  keep_fixed_files("services", now.services, &next->services, &out);
  keep_connector_files(now, next, &out);
  if (!checked)
    std::erase_if(out, [](const std::string &line) { return line.ends_with(file_lost); });
  std::vector<PluginUse> reloaded;
  if (reload_policies) reloaded = extract_reloads(now.policies, &next->policies);
  keep_uses("transports", now.transports, &next->transports, &out);
  keep_uses("policies", now.policies, &next->policies, &out);
  keep_uses("telemetry", now.telemetry, &next->telemetry, &out);
  keep_uses("services", now.services, &next->services, &out);
  for (const PluginUse &use : reloaded) {
    for (PluginUse &kept : next->policies) {
      if (kept.id == use.id) kept = use;
    }
  }
  put_back(policies, &next->policies);
  put_back(telemetry, &next->telemetry);
  const bool kept_connector = keep_connectors(now, next, &out);
  keep_limits(now.limits, &next->limits, &out);
  if (now.plugin_dirs != next->plugin_dirs) out.push_back("plugin_dirs" + std::string(restart));
  if (now.state_dir != next->state_dir) out.push_back("state_dir" + std::string(restart));
  if (now.isolation.require != next->isolation.require) {
    out.push_back("isolation.mode" + std::string(restart));
  }
  if (now.metrics_listen != next->metrics_listen) {
    out.push_back("gateway.metrics_listen" + std::string(restart));
  }
  next->isolation = now.isolation;
  next->metrics_listen = now.metrics_listen;
  next->plugin_dirs = now.plugin_dirs;
  next->state_dir = now.state_dir;
  keep_protected(now, next, kept_connector);
  return out;
}

}  // namespace bulkhead
