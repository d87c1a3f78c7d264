// Implements `plugin list`, which lists the installed plugins and those that the profile uses.
#include <map>

#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "plugin/loader.hpp"
#include "sources/plugin_check.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {
namespace {

// Returns how the profile uses each plugin, for example "transports.http" or "servers of type
// stdio".
std::map<std::string, std::string> uses_of(const Profile &profile) {
  std::map<std::string, std::string> out;
  const auto add = [&](const std::string &plugin, const std::string &what) {
    std::string &text = out[plugin];
    text += (text.empty() ? "" : ", ") + what;
  };
  const auto add_all = [&](const std::vector<PluginUse> &uses, const std::string &section) {
    for (const auto &use : uses) add(use.plugin, section + "." + use.id);
  };
  add_all(profile.transports, "transports");
  add_all(profile.tools, "tools");
  add_all(profile.policies, "policies");
  add_all(profile.telemetry, "telemetry");
  add_all(profile.services, "services");
  for (const auto &[type, plugin] : profile.connectors) add(plugin, "servers of type " + type);
  return out;
}

std::string name_of(const FoundPlugin &plugin) {
  if (!plugin.manifest.id.empty()) return plugin.manifest.id;
  return plugin.path.substr(plugin.path.find_last_of('/') + 1);
}

// Returns how the profile uses this plugin. The profile may refer to the plugin by path or by name.
std::string use_of(const FoundPlugin &plugin, const std::map<std::string, std::string> &uses) {
  const auto by_path = uses.find(plugin.path);
  if (by_path != uses.end()) return by_path->second;
  const auto by_name = uses.find(name_of(plugin));
  return by_name == uses.end() ? "" : by_name->second;
}

std::string as_json(const std::vector<FoundPlugin> &found,
                    const std::map<std::string, std::string> &uses) {
  std::string out = "[";
  for (const auto &plugin : found) {
    out += out.size() > 1 ? ",\n {" : "\n {";
    const auto add = [&out](std::string_view key, const auto &value) {
      bh::json::append_member(&out, key, value);
    };
    add("id", name_of(plugin));
    add("version", plugin.manifest.version);
    add("description", plugin.manifest.description);
    add("path", plugin.path);
    add("used_for", use_of(plugin, uses));
    add("error", plugin.error);
    add("provides", plugin.manifest.provides);
    out += '}';
  }
  return out + "\n]\n";
}

std::string as_table(const std::vector<FoundPlugin> &found,
                     const std::map<std::string, std::string> &uses) {
  Table table({"PLUGIN", "VERSION", "PROVIDES", "USED FOR", "ERROR"});
  for (const auto &plugin : found) {
    std::string provides;
    for (const auto &id : plugin.manifest.provides) provides += (provides.empty() ? "" : " ") + id;
    // A plugin that the profile refers to by path may have the same name as an installed plugin.
    const bool by_path = uses.contains(plugin.path);
    const std::string name = name_of(plugin) + (by_path ? " (" + tilde(plugin.path) + ")" : "");
    table.add({printable(name), printable(plugin.manifest.version), printable(provides),
               printable(use_of(plugin, uses)), printable(plugin.error)});
  }
  return table.str();
}

}  // namespace

int run_plugin_list(const Arguments &arguments) {
  auto loaded = load_to_look(arguments, Transports::served);
  if (!loaded) return report_config_errors(loaded.error());
  const auto &dirs = loaded->profile.plugin_dirs;
  const auto found = find_plugins(loaded->profile);
  const auto uses = uses_of(loaded->profile);
  if (found.empty() && !arguments.json) {
    std::string where;
    for (const auto &dir : dirs) where += " " + tilde(dir);
    return complain("no plugins found in" + where);
  }
  const bool written = write_stdout(arguments.json ? as_json(found, uses) : as_table(found, uses));
  return written ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
