// Implements `warm`, which starts each server once to fill its private cache and to store its
// lists.
#include <algorithm>
#include <cstdlib>
#include <map>

#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "gateway/run_host.hpp"
#include "mcp/scan.hpp"
#include "sandbox/cache_folder.hpp"
#include "sources/profile_source.hpp"
#include "sources/snapshot.hpp"
#include "state/list_store.hpp"
#include "state/npm_cache.hpp"

namespace bulkhead::program {
namespace {

constexpr std::uint64_t download_ms = 600'000;

// Removes the tools plugins, the telemetry plugins and all servers that are not in `names` from the
// profile. If `names` is empty, keeps all servers. Returns the first name that the profile does not
// contain, or an empty string.
std::string keep_servers(Profile &profile, const std::vector<std::string> &names) {
  profile.tools.clear();
  profile.telemetry.clear();  // there are no client calls to record
  const auto named = [&](const ServerDef &def) {
    return names.empty() || std::find(names.begin(), names.end(), def.name) != names.end();
  };
  for (const std::string &name : names) {
    const auto &all = profile.servers;
    if (std::none_of(all.begin(), all.end(), [&](auto &def) { return def.name == name; }))
      return name;
  }
  std::erase_if(profile.servers, [&](const ServerDef &def) { return !named(def); });
  return {};
}

// Prepares the servers to be started for a single client, and returns their stored lists.
// load_stored_lists() must be called first, because new lists must be stored for the unmodified
// definitions.
std::map<std::string, KeptLists> prepare(Profile &profile) {
  std::map<std::string, KeptLists> known;
  for (ServerDef &def : profile.servers) {
    known[def.name] = def.kept;
    def.kept.lists.clear();  // every list is then reported as new
    def.lazy = false;
    def.session = SessionScope::shared;  // there is only one client
    if (downloads_first(def.command)) {
      def.connect_timeout_ms = std::max(def.connect_timeout_ms.value_or(0), download_ms);
    }
  }
  return known;
}

// Copies packages from the user's npm cache, so that servers need not download them.
std::map<std::string, NpmCopied> fill_caches(const Profile &profile) {
  std::map<std::string, NpmCopied> out;
  const char *named = std::getenv("npm_config_cache");
  const std::string npm = named != nullptr && *named == '/' ? named : home_dir() + "/.npm";
  for (const ServerDef &def : profile.servers) {
    // Without a sandbox, the server uses the user's own cache.
    if (def.disabled || def.sandbox.mode == SandboxMode::off) continue;
    const std::string package = npx_package(def);
    if (package.empty() || !make_private_dir(profile.state_dir)) continue;
    const std::string folder =
        make_cache_folder(profile.state_dir, def.name, def.command, def.args);
    if (folder.empty()) continue;
    const NpmCopied copied = copy_npm_packages(package, npm, folder);
    if (copied.packages != 0) out[def.name] = copied;
  }
  return out;
}

std::string as_json(const HostStatus &status) {
  std::string out = R"({"servers":[)";
  for (const ServerStatus &server : status.servers) {
    if (!out.ends_with('[')) out += ',';
    out += '{';
    bh::json::append_member(&out, "name", server.name);
    bh::json::append_member(&out, "state", to_string(server.state));
    bh::json::append_member(&out, "reason", server.reason);
    bh::json::append_member(&out, "tools", server.tools);
    out += '}';
  }
  return out + "]}\n";
}

}  // namespace

int run_warm(const Arguments &arguments) {
  auto loaded = load_checked(arguments, Transports::none);
  if (!loaded) return report_config_errors(loaded.error());
  Profile &profile = loaded->profile;
  if (const std::string none = keep_servers(profile, arguments.names); !none.empty()) {
    return complain("no server is named " + none, exit_usage);
  }
  const std::size_t notes = profile.notes.size();
  load_stored_lists(&profile);
  for (std::size_t i = notes; i < profile.notes.size(); ++i) complain(profile.notes[i]);
  std::map<std::string, KeptLists> lists = prepare(profile);
  const ListStore store(profile.state_dir);
  std::map<std::string, KeptLists> fresh;
  for (const auto &[server, copied] : fill_caches(profile)) {
    complain("server " + server + ": " + std::to_string(copied.packages) + " packages (" +
                 std::to_string((copied.bytes + 1023) / 1024) + " KiB) copied from your npm cache",
             exit_ok);
  }
  ShortRun run(arguments);
  run.on_list([&](const ListNews &news) {
    const auto at = lists.find(news.server);
    if (at == lists.end() || at->second.definition != news.definition) return;
    merge_kept_list(&at->second, news.list);
    fresh[news.server] = at->second;
  });
  if (auto started = run.start(std::move(profile)); !started) {
    return complain(started.error().text);
  }
  run.wait_settled();
  bool good = true;
  for (const auto &[server, kept] : fresh) {
    const auto written = store.write(server, kept);
    if (written) continue;
    complain("cannot store the lists of server " + server + ": " + written.error().text);
    good = false;
  }
  const HostStatus status = run.host().status();
  for (const ServerStatus &server : status.servers) {
    good = good && (server.state == ServerState::ready || server.state == ServerState::disabled);
  }
  std::string text = arguments.json ? as_json(status) : server_table(status.servers, "");
  if (text.empty()) text = "No servers are configured.\n";
  return write_stdout(text) && good ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
