// Implements `plugin add` and `plugin remove`, which change the user's installed plugins, and
// `plugin log`, which shows these changes.
#include <ctime>
#include <filesystem>
#include <system_error>

#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "commands/plugin_uses.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "sources/profile_source.hpp"
#include "trust/installed_plugins.hpp"
#include "trust/plugin_log.hpp"

namespace bulkhead::program {
namespace {

std::string absolute_file(const std::string &path) {
  std::error_code unknown;
  const std::string out = std::filesystem::absolute(path, unknown).lexically_normal().string();
  return unknown ? path : out;
}

std::string log_time(std::uint64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm parts{};
  char out[32];
  ::localtime_r(&seconds, &parts);
  return {out, std::strftime(out, sizeof out, "%Y-%m-%d %H:%M:%S", &parts)};
}

void add_plugin_members(std::string *json, const InstalledPlugin &plugin) {
  bh::json::append_member(json, "id", plugin.id);
  bh::json::append_member(json, "version", plugin.version);
  bh::json::append_member(json, "sha256", plugin.sha256);
  bh::json::append_member(json, "signer", plugin.signer);
  bh::json::append_member(json, "path", plugin.path);
}

std::string version_name(const InstalledPlugin &plugin) {
  return printable(plugin.version.empty() ? "(unknown version)" : plugin.version);
}

std::string describe_add(const PluginAdded &added, bool dry_run) {
  const InstalledPlugin &now = added.now;
  const std::string name = now.id + " " + version_name(now);
  if (added.unchanged) return name + " is already installed in " + tilde(now.path) + "\n";
  std::string out = dry_run ? "would install " : "installed ";
  out += name + " in " + printable(tilde(now.path)) + "\n";
  if (!added.before.id.empty())
    out += "  replaces   version " + version_name(added.before) + " (sha256 " +
           added.before.sha256.substr(0, 12) + ")\n";
  out += "  sha256     " + now.sha256 + "\n  signature  " +
         (now.signer.empty() ? "not signed by a trusted key" : "signed by the key " + now.signer) +
         "\n";
  if (dry_run) return out;
  return out + (added.before.id.empty()
                    ? "To use it, set plugin = \"" + now.id +
                          "\" in the profile, for example in [tools.NAME]; then run `bulkhead "
                          "reload`.\n"
                    : "To use the new version in running gateways, run `bulkhead reload`.\n");
}

}  // namespace

int run_plugin_add(const Arguments &arguments) {
  const auto loaded = load_to_look(arguments, Transports::served);
  if (!loaded) return report_config_errors(loaded.error());
  PluginAdd request;
  request.file = absolute_file(arguments.plugin.file);
  if (!arguments.plugin.signature.empty())
    request.signature_file = absolute_file(arguments.plugin.signature);
  request.allow_older = arguments.plugin.allow_older;
  request.dry_run = arguments.plugin.dry_run;
  const std::string own =
      own_plugin_dir() + "/" + std::filesystem::path(request.file).filename().string();
  std::error_code unknown;
  if (std::filesystem::exists(own, unknown))
    return complain(tilde(own) +
                    " is installed with Bulkhead and is found first, so a plugin with the same ID "
                    "would not be used. Give the plugin another ID");
  InstalledPlugins store(user_plugin_dir(), loaded->profile.state_dir);
  const auto added = store.add(request, loaded->profile.plugin_trust);
  if (!added) return complain(printable(added.error().text));
  if (!arguments.json)
    return write_stdout(describe_add(*added, request.dry_run)) ? exit_ok : exit_failed;
  std::string json = "{";
  add_plugin_members(&json, added->now);
  bh::json::append_member(&json, "replaced_version", added->before.version);
  bh::json::append_member(&json, "replaced_sha256", added->before.sha256);
  bh::json::append_member(&json, "unchanged", added->unchanged);
  bh::json::append_member(&json, "dry_run", request.dry_run);
  return write_stdout(json + "}\n") ? exit_ok : exit_failed;
}

int run_plugin_remove(const Arguments &arguments) {
  const auto loaded = load_to_look(arguments, Transports::served);
  if (!loaded) return report_config_errors(loaded.error());
  const auto uses = uses_of(loaded->profile);
  if (const auto use = uses.find(arguments.name); use != uses.end())
    return complain("the profile uses the plugin \"" + printable(arguments.name) + "\" (" +
                    printable(use->second) + "). Change the profile, and try again");
  InstalledPlugins store(user_plugin_dir(), loaded->profile.state_dir);
  const bool dry_run = arguments.plugin.dry_run;
  const auto removed = store.remove(arguments.name, dry_run);
  if (!removed) return complain(printable(removed.error().text));
  if (!arguments.json)
    return write_stdout((dry_run ? "would remove " : "removed ") + removed->id + " " +
                        version_name(*removed) + " from " + printable(tilde(store.folder())) + "\n")
               ? exit_ok
               : exit_failed;
  std::string json = "{";
  add_plugin_members(&json, *removed);
  bh::json::append_member(&json, "dry_run", dry_run);
  return write_stdout(json + "}\n") ? exit_ok : exit_failed;
}

int run_plugin_log(const Arguments &arguments) {
  const auto loaded = load_to_look(arguments, Transports::served);
  if (!loaded) return report_config_errors(loaded.error());
  const auto events = PluginLog(loaded->profile.state_dir).read();
  if (!events) return complain(printable(events.error().text));
  Table table({"TIME", "EVENT", "PLUGIN", "VERSION", "SHA256", "SIGNED BY", "NOTE"});
  std::string json = "[";
  for (const PluginEvent &event : *events) {
    json += json.size() > 1 ? ",\n {" : "\n {";
    bh::json::append_member(&json, "at", event.at);
    bh::json::append_member(&json, "event", event.event);
    bh::json::append_member(&json, "id", event.id);
    bh::json::append_member(&json, "version", event.version);
    bh::json::append_member(&json, "sha256", event.sha256);
    bh::json::append_member(&json, "signer", event.signer);
    bh::json::append_member(&json, "note", event.note);
    json += '}';
    table.add({log_time(event.at), printable(event.event), printable(event.id),
               printable(event.version), printable(event.sha256.substr(0, 12)),
               printable(event.signer), printable(event.note)});
  }
  if (arguments.json) return write_stdout(json + "\n]\n") ? exit_ok : exit_failed;
  if (events->empty()) return write_stdout("no changes are logged\n") ? exit_ok : exit_failed;
  return write_stdout(table.str()) ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
