// Implements `plugin verify`, which verifies the signature and digest of a plugin, and lifts its
// quarantine.
#include <filesystem>
#include <system_error>

#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "plugin/plugin_file.hpp"
#include "plugin/plugin_signature.hpp"
#include "plugin_base/load_options.hpp"
#include "sources/profile_source.hpp"
#include "trust/plugin_log.hpp"
#include "trust/quarantine.hpp"

namespace bulkhead::program {
namespace {

struct Verdict {
  std::string id, version, path, sha256, trust;
  std::string error;    // why the plugin is rejected; empty: it can be loaded
  std::string comment;  // the trusted comment with which the plugin can be signed
};

Result<Verdict> verify_file(const std::string &plugin, const Profile &profile,
                            const std::string &signature) {
  LoadOptions options = load_options(profile);
  options.signature_file = signature;
  auto checked = Library::check(plugin, options);
  Verdict out;
  if (!checked) {
    out.error = checked.error().text;
    // Describes the file even if it is not trusted.
    LoadOptions any;
    any.dirs = profile.plugin_dirs;
    checked = Library::check(plugin, any);
    if (!checked) return fail(BH_E_INVALID, out.error);
  }
  out.id = checked->manifest.id;
  out.version = checked->manifest.version;
  out.path = checked->path;
  const auto digest = sha256_of(checked->fd());
  if (!digest) return std::unexpected(digest.error());
  out.sha256 = *digest;
  if (const auto comment = signing_comment(checked->manifest)) out.comment = *comment;
  out.trust = !out.error.empty()          ? ""
              : checked->trusted_by_place ? "program"
              : checked->signer.empty()   ? "unsigned"
                                          : "key " + checked->signer;
  return out;
}

std::string verdict_text(const Verdict &verdict) {
  std::string out = printable(verdict.id) + " " + printable(verdict.version) + "\n  file       " +
                    printable(tilde(verdict.path)) + "\n  sha256     " + verdict.sha256 + "\n";
  if (verdict.trust == "program")
    out += "  signature  not required: installed with Bulkhead\n";
  else if (verdict.trust.starts_with("key "))
    out += "  signature  valid, by the " + verdict.trust + "\n";
  else if (verdict.trust == "unsigned")
    out += "  signature  none by a trusted key; the profile does not require one\n";
  const bool is_signed = verdict.trust == "program" || verdict.trust.starts_with("key ");
  if (!is_signed && !verdict.comment.empty())
    out += "To sign it:\n  minisign -S -s KEY -m " + printable(verdict.path) + " -t '" +
           printable(verdict.comment) + "'\n";
  return out;
}

std::string verdict_json(const Verdict &verdict) {
  std::string json = "{";
  bh::json::append_member(&json, "id", verdict.id);
  bh::json::append_member(&json, "version", verdict.version);
  bh::json::append_member(&json, "path", verdict.path);
  bh::json::append_member(&json, "sha256", verdict.sha256);
  bh::json::append_member(&json, "trust", verdict.trust);
  bh::json::append_member(&json, "comment", verdict.comment);
  bh::json::append_member(&json, "error", verdict.error);
  return json + "}\n";
}

int lift_quarantine(const Arguments &arguments, const std::string &plugin, const Profile &profile) {
  // A path identifies one file; an ID identifies all versions that are listed.
  std::string what = plugin;
  if (plugin.find('/') != std::string::npos) {
    const auto checked = Library::check(plugin, {});
    if (!checked) return complain(printable(checked.error().text));
    const auto digest = sha256_of(checked->fd());
    if (!digest) return complain(printable(digest.error().text));
    what = *digest;
  }
  const auto cleared = Quarantine(profile.state_dir).clear(what);
  if (!cleared) return complain(printable(cleared.error().text));
  if (cleared->empty()) return complain(printable(plugin) + " is not quarantined");
  std::string text, json = "[";
  for (const QuarantinedPlugin &entry : *cleared) {
    const auto logged =
        PluginLog(profile.state_dir)
            .append({bh::unix_ms(), "clear", entry.id, entry.version, entry.sha256, {}, {}});
    if (!logged) complain(printable(logged.error().text));
    text += printable(entry.id) + " " + printable(entry.version) + " (sha256 " +
            printable(entry.sha256.substr(0, 12)) +
            ") is no longer quarantined; the reason was: " + printable(entry.reason) + "\n";
    json += json.size() > 1 ? ",{" : "{";
    bh::json::append_member(&json, "id", entry.id);
    bh::json::append_member(&json, "version", entry.version);
    bh::json::append_member(&json, "sha256", entry.sha256);
    bh::json::append_member(&json, "reason", entry.reason);
    json += '}';
  }
  text += "To use it in running gateways, run `bulkhead reload`.\n";
  return write_stdout(arguments.json ? json + "]\n" : text) ? exit_ok : exit_failed;
}

}  // namespace

int run_plugin_verify(const Arguments &arguments) {
  const auto loaded = load_to_look(arguments, Transports::served);
  if (!loaded) return report_config_errors(loaded.error());
  std::string plugin = arguments.plugin.file, signature = arguments.plugin.signature;
  std::error_code unknown;
  const auto absolute = [&](const std::string &path) {
    return std::filesystem::absolute(path, unknown).lexically_normal().string();
  };
  // "my-tools.so" is a file in the working folder, and "my-tools" is an ID.
  if (plugin.find('/') != std::string::npos || plugin.ends_with(".so")) plugin = absolute(plugin);
  if (!signature.empty()) signature = absolute(signature);
  if (arguments.plugin.clear) return lift_quarantine(arguments, plugin, loaded->profile);
  const auto verdict = verify_file(plugin, loaded->profile, signature);
  if (!verdict) return complain(printable(verdict.error().text));
  if (!write_stdout(arguments.json ? verdict_json(*verdict) : verdict_text(*verdict)))
    return exit_failed;
  if (verdict->error.empty()) return exit_ok;
  return arguments.json ? exit_failed : complain(printable(verdict->error));
}

}  // namespace bulkhead::program
