// Implements `plugin list`, which lists the installed plugins and those that the profile uses.
#include <map>

#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "commands/plugin_uses.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "plugin/loader.hpp"
#include "plugin/plugin_file.hpp"
#include "plugin_base/load_options.hpp"
#include "sources/plugin_check.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {
namespace {

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

// The result of verifying a plugin's file.
struct Verified {
  std::string sha256, trust;  // `trust` is empty if the plugin is rejected
};

std::vector<Verified> verify_all(const Profile &profile, std::vector<FoundPlugin> *found) {
  std::vector<Verified> out;
  for (FoundPlugin &plugin : *found) {
    Verified &one = out.emplace_back();
    if (!plugin.error.empty()) continue;
    const auto checked = Library::check(plugin.path, load_options(profile));
    if (!checked) {
      plugin.error = checked.error().text;
      continue;
    }
    if (const auto digest = sha256_of(checked->fd())) one.sha256 = *digest;
    one.trust = checked->trusted_by_place ? "program"
                : checked->signer.empty() ? "unsigned"
                                          : "key " + checked->signer;
  }
  return out;
}

std::string as_json(const std::vector<FoundPlugin> &found, const std::vector<Verified> &verified,
                    const std::map<std::string, std::string> &uses) {
  std::string out = "[";
  for (std::size_t i = 0; i < found.size(); ++i) {
    const FoundPlugin &plugin = found[i];
    out += out.size() > 1 ? ",\n {" : "\n {";
    const auto add = [&out](std::string_view key, const auto &value) {
      bh::json::append_member(&out, key, value);
    };
    add("id", name_of(plugin));
    add("version", plugin.manifest.version);
    add("description", plugin.manifest.description);
    add("path", plugin.path);
    add("used_for", use_of(plugin, uses));
    add("sha256", verified[i].sha256);
    add("trust", verified[i].trust);
    add("error", plugin.error);
    add("provides", plugin.manifest.provides);
    out += '}';
  }
  return out + "\n]\n";
}

std::string as_table(const std::vector<FoundPlugin> &found, const std::vector<Verified> &verified,
                     const std::map<std::string, std::string> &uses) {
  Table table({"PLUGIN", "VERSION", "PROVIDES", "USED FOR", "TRUST", "ERROR"});
  for (std::size_t i = 0; i < found.size(); ++i) {
    const FoundPlugin &plugin = found[i];
    std::string provides;
    for (const auto &id : plugin.manifest.provides) provides += (provides.empty() ? "" : " ") + id;
    // A plugin that the profile refers to by path may have the same name as an installed plugin.
    const bool by_path = uses.contains(plugin.path);
    const std::string name = name_of(plugin) + (by_path ? " (" + tilde(plugin.path) + ")" : "");
    table.add({printable(name), printable(plugin.manifest.version), printable(provides),
               printable(use_of(plugin, uses)), verified[i].trust, printable(plugin.error)});
  }
  return table.str();
}

}  // namespace

int run_plugin_list(const Arguments &arguments) {
  auto loaded = load_to_look(arguments, Transports::served);
  if (!loaded) return report_config_errors(loaded.error());
  const auto &dirs = loaded->profile.plugin_dirs;
  auto found = find_plugins(loaded->profile);
  const auto verified = verify_all(loaded->profile, &found);
  const auto uses = uses_of(loaded->profile);
  if (found.empty() && !arguments.json) {
    std::string where;
    for (const auto &dir : dirs) where += " " + tilde(dir);
    return complain("no plugins found in" + where);
  }
  const bool written = write_stdout(arguments.json ? as_json(found, verified, uses)
                                                   : as_table(found, verified, uses));
  return written ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
