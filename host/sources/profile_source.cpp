#include "sources/profile_source.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "common/paths.hpp"
#include "corporation/holds.hpp"
#include "layers/load.hpp"
#include "layers/project.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "profile/protected_paths.hpp"
#include "sandbox/hidden_places.hpp"
#include "sandbox/paths.hpp"
#include "sources/approval_store.hpp"
#include "sources/builtin_profile.hpp"
#include "sources/corp_profile.hpp"
#include "sources/file_folders.hpp"
#include "sources/file_layers.hpp"
#include "sources/plugin_check.hpp"
#include "sources/project_file.hpp"
#include "sources/unmatched_names.hpp"
#include "state/list_store.hpp"
#include "state/pin_store.hpp"
#include "trust/quarantine.hpp"

namespace bulkhead::program {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view launchers[] = {"npx",  "npm", "pnpm", "pnpx", "yarn",   "bunx",   "bun",
                                          "deno", "uvx", "uv",   "pipx", "docker", "podman", "dnx"};

std::optional<std::string> environment_value(const std::string &name) {
  const char *value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

// Loads the profile from its layers and replaces the contents of *holds.
std::expected<Profile, Lines> load_layers(const std::vector<ProfileLayer> &layers, ProfileUse use,
                                          std::vector<ProfileHold> *holds) {
  holds->clear();
  auto loaded = load_profile(layers, {environment_value, home_dir(), use}, holds);
  if (auto *errors = std::get_if<std::vector<ProfileError>>(&loaded)) {
    Lines lines;
    for (const auto &error : *errors) lines.push_back(to_string(error));
    return std::unexpected(std::move(lines));
  }
  return std::move(std::get<Profile>(loaded));
}

bool is_stdio(const PluginUse &use) {
  const std::string_view name = use.plugin;
  return name.substr(name.find_last_of('/') + 1).starts_with("transport-stdio");
}

bool is_builtin(const PluginUse &use) {
  return use.origin.layer == "builtin";
}

// Keeps only the transports that the command needs. If another layer defines any of these, the
// builtin ones are removed.
void select_transports(Profile &profile, Transports wanted) {
  auto &all = profile.transports;
  if (wanted == Transports::none) return all.clear();
  std::erase_if(
      all, [&](const PluginUse &use) { return is_stdio(use) != (wanted == Transports::stdio); });
  const auto own =
      std::count_if(all.begin(), all.end(), [](auto &use) { return !is_builtin(use); });
  if (own > 0) std::erase_if(all, is_builtin);
}

// Removes the builtin transports that this command does not use from the displayed profile.
void hide_unused_transports(Profile &profile) {
  std::erase_if(profile.shown, [&](const Profile::Shown &shown) {
    constexpr std::string_view group = "transports.";
    if (shown.origin.layer != "builtin" || !shown.path.starts_with(group)) return false;
    const std::string_view rest = std::string_view(shown.path).substr(group.size());
    return std::none_of(profile.transports.begin(), profile.transports.end(),
                        [&](const PluginUse &use) { return rest.starts_with(use.id + "."); });
  });
}

void give_launchers_time(Profile &profile) {
  const bool is_set =
      std::any_of(profile.shown.begin(), profile.shown.end(), [](const Profile::Shown &shown) {
        return shown.path == "limits.connect_timeout_ms" && shown.origin.layer != "default";
      });
  if (is_set) return;
  for (ServerDef &def : profile.servers) {
    if (!def.connect_timeout_ms && downloads_first(def.command)) {
      def.connect_timeout_ms =
          std::min<std::uint64_t>(launcher_connect_ms, profile.limits.timeout_ceiling_ms);
    }
  }
}

// Returns the path of the Unix socket for a listen address "unix:PATH" or "hybrid:PATH:PORT" (the
// socket of a virtual machine monitor). Returns an empty string for other addresses.
std::string socket_file(std::string_view address) {
  constexpr std::string_view unix_prefix = "unix:", hybrid_prefix = "hybrid:";
  if (address.starts_with(unix_prefix)) return std::string(address.substr(unix_prefix.size()));
  if (!address.starts_with(hybrid_prefix)) return {};
  std::string path(address.substr(hybrid_prefix.size()));
  const std::size_t colon = path.rfind(':');
  if (colon != std::string::npos) path[colon] = '_';
  return path;
}

void hide_sockets(const PluginUse &transport, std::vector<std::string> &hidden) {
  std::string scratch;
  const auto add = [&](std::string_view value) {
    if (!value.starts_with('"')) return;
    std::string path = socket_file(mcp::unquote(value, &scratch));
    if (path.starts_with('/')) hidden.push_back(std::move(path));
  };
  const std::string_view listen = mcp::member(transport.config_json, "listen");
  if (!listen.starts_with('[')) return add(listen);
  mcp::for_each_item(listen, add);
}

std::string absolute_path(const std::string &path) {
  std::error_code error;
  return std::filesystem::absolute(path, error).lexically_normal().string();
}

// Removes ".." from the paths of plugins. A symbolic link in front of it would otherwise determine
// which file is loaded, and that file would not be the protected one.
void normalize_plugin_paths(Profile &profile) {
  const auto normalize = [](std::string &path) {
    const std::filesystem::path named(path);
    if (std::find(named.begin(), named.end(), "..") == named.end()) return;
    path = absolute_path(path);
  };
  for (std::string &folder : profile.plugin_dirs) normalize(folder);
  for (auto &[type, plugin] : profile.connectors) normalize(plugin);
  for (auto *uses : {&profile.transports, &profile.tools, &profile.policies, &profile.telemetry,
                     &profile.services}) {
    for (PluginUse &use : *uses) normalize(use.plugin);
  }
}

// Hides the gateway's own configuration, state and sockets from servers.
void hide_from_servers(Profile &profile) {
  std::vector<std::string> &fixed = profile.fixed_own_paths;
  for (const PluginUse &use : profile.transports) hide_sockets(use, fixed);
  fixed.push_back(PinStore(profile.state_dir).folder());
  const std::string config = default_config_file();
  profile.own_paths.push_back(config.substr(0, config.find_last_of('/')));
  profile.own_paths.push_back(ApprovalStore().folder());
  for (std::string &folder : control_dirs()) profile.own_paths.push_back(std::move(folder));
  for (std::string &path : profile.own_paths) path = absolute_path(without_parent_steps(path));
  for (std::string &path : fixed) path = absolute_path(without_parent_steps(path));
  add_targets(&profile.own_paths);
  add_targets(&fixed);
}

// Lists the files that the gateway executes, which servers must not change.
void list_programs(Profile &profile) {
  static const std::vector<std::string> own = own_program_files();
  profile.programs = own;
  const auto add = [](const std::string &path, std::vector<std::string> *out) {
    const std::string full = absolute_path(path);
    const bool known = std::find(out->begin(), out->end(), full) != out->end();
    if (!path.empty() && !full.empty() && !known) out->push_back(full);
  };
  const auto add_plugin = [&](const std::string &plugin, std::vector<std::string> *out) {
    if (plugin.find('/') != std::string::npos) add(plugin, out);  // otherwise, a name
  };
  for (const PluginUse &use : profile.tools) add_plugin(use.plugin, &profile.programs);
  // A reload can add connectors. keep_fixed() keeps those that a reload cannot change.
  for (const auto &[type, plugin] : profile.connectors) add_plugin(plugin, &profile.programs);
  for (const std::string &folder : profile.plugin_dirs) add(folder, &profile.fixed_programs);
  for (const auto *uses :
       {&profile.transports, &profile.policies, &profile.telemetry, &profile.services}) {
    for (const PluginUse &use : *uses) add_plugin(use.plugin, &profile.fixed_programs);
  }
  add_targets(&profile.programs);
  add_targets(&profile.fixed_programs);
  note_protected_folders(&profile);
}

// Returns a layer that applies --listen to the HTTP transport, which may have any name.
std::expected<ProfileLayer, std::string> listen_layer(const Profile &profile,
                                                      const std::string &address) {
  const auto is_http = [](const PluginUse &use) {  // `plugin` is a name or a path
    return use.plugin.substr(use.plugin.rfind('/') + 1).starts_with("transport-http");
  };
  const auto &all = profile.transports;
  if (std::count_if(all.begin(), all.end(), is_http) != 1) {
    return std::unexpected(
        "--listen requires exactly one HTTP transport in the profile; otherwise, set the "
        "addresses in the profile");
  }
  const auto http = std::find_if(all.begin(), all.end(), is_http);
  std::string text = "[transports.";
  bh::json::append_quoted(&text, http->id);
  text += "]\nlisten = ";
  bh::json::append_quoted(&text, address);
  return ProfileLayer{"command line", "--listen", text + "\n"};
}

// Adds the project file as a layer, together with its approvals. The file is read only once, so the
// text that was checked against the approvals is also the text that is used. If the file merely
// happens to be in the working directory, it must not keep the gateway from starting, so its errors
// become notes.
std::expected<void, Lines> add_project(const Arguments &arguments, LoadedProfile *out, Lines *notes,
                                       std::vector<ProfileLayer> *layers) {
  const std::string path = project_file(arguments);
  if (path.empty()) return {};
  auto layer = read_project_file(path);
  Lines wrong;
  if (!layer) {
    wrong.push_back(layer.error().text);
  } else if (auto read = read_project(*layer);
             const auto *errors = std::get_if<std::vector<ProfileError>>(&read)) {
    for (const auto &error : *errors) wrong.push_back(to_string(error));
  }
  if (!wrong.empty()) {
    if (!arguments.project.empty()) return std::unexpected(std::move(wrong));
    notes->push_back("the project file is ignored: " + wrong.front());
    return {};
  }
  std::string problem;
  layer->approved = ApprovalStore().digests(layer->file, &problem);
  if (!problem.empty()) notes->push_back("approvals: " + problem);
  layer->lenient = arguments.project.empty();
  out->project = layer->file;
  layers->push_back(std::move(*layer));
  return {};
}

// Sets the state and plugin directories. `corp` is true if a corporate profile exists.
void fill_in_folders(LoadedProfile &loaded, const Arguments &arguments, bool corp) {
  Profile &profile = loaded.profile;
  if (profile.state_dir.empty()) {
    profile.state_dir = default_state_dir();
    for (auto &shown : profile.shown) {
      if (shown.path == "state_dir") shown.value = tilde(profile.state_dir);
    }
  }
  auto &dirs = profile.plugin_dirs;
  const auto &given = arguments.plugin_dirs;
  dirs.insert(dirs.end(), given.begin(), given.end());
  // A plugin in the user's directories must not replace a plugin of the same name that the
  // corporate profile uses.
  if (corp || given.empty()) dirs.insert(corp ? dirs.begin() : dirs.end(), own_plugin_dir());
  // The plugins that the user has added are last, so they never replace another plugin.
  if (given.empty()) dirs.push_back(user_plugin_dir());
  profile.plugin_trust.program_dir = own_plugin_dir();
  add_quarantine(&profile);
  normalize_plugin_paths(profile);
}

struct CorpLayerAdded {
  bool there = false;
  std::optional<CorpRevision> revision;  // set if the profile is signed
};

std::expected<CorpLayerAdded, Lines> add_corp_layer(Lines *notes,
                                                    std::vector<ProfileLayer> *layers) {
  auto corp = read_corp_profile();
  if (!corp) return std::unexpected(std::move(corp.error()));
  if (!*corp) return CorpLayerAdded{};
  layers->push_back(std::move((*corp)->layer));
  notes->insert(notes->end(), (*corp)->notes.begin(), (*corp)->notes.end());
  return CorpLayerAdded{true, std::move((*corp)->revision)};
}

// Returns an error for command-line options that override protected settings.
std::expected<void, Lines> check_arguments(const Arguments &arguments,
                                           const std::vector<ProfileHold> &holds) {
  Lines wrong;
  const auto check = [&](bool given, std::string_view option, std::vector<std::string> path) {
    const ProfileHold *hold = given ? find_hold(holds, path) : nullptr;
    if (hold != nullptr) wrong.push_back(std::string(option) + ": " + hold->says + " [locked]");
  };
  check(!arguments.plugin_dirs.empty(), "--plugin-dir", {"plugin_dirs"});
  check(arguments.single_process, "--single-process", {"isolation", "mode"});
  if (wrong.empty()) return {};
  return std::unexpected(std::move(wrong));
}

// Adds the builtin tools. The file tools are omitted if the working directory is the home directory
// or one of its parents, because the home directory contains keys and passwords, or if it contains
// or is in a folder of credentials: a server may have replaced the working directory by a link.
void add_builtin_tools(std::string *builtin, Lines *notes) {
  *builtin += builtin_web_tools;
  std::error_code gone;
  const std::string here = std::filesystem::current_path(gone).string();
  const std::string home = std::filesystem::weakly_canonical(home_dir(), gone).string();
  const auto holds = [&](const std::string &path) {
    const std::string at = resolved_path(path);
    return is_within(here, at) || (std::filesystem::exists(at, gone) && is_within(at, here));
  };
  const auto secrets = secrets_at_home();
  const std::string config = default_config_file();
  const bool secret = holds(config.substr(0, config.find_last_of('/'))) ||
                      holds(default_state_dir()) ||
                      std::any_of(secrets.begin(), secrets.end(),
                                  [&](std::string_view name) { return holds(joined(home, name)); });
  if (!here.empty() && !is_within(home, here) && !secret) {
    *builtin += builtin_file_tools;
    return;
  }
  notes->push_back("the builtin file tools are disabled: the working directory is " + tilde(here) +
                   ", which contains your home folder or credentials, or is in a folder with "
                   "credentials; start in "
                   "a project folder, or set folders "
                   "in [tools.files] in a profile");
}

// Adds a note if there is a configuration file but the profile has no servers and no tools. The
// builtin tools are not added in this case, because a configuration file is expected to be
// complete.
void note_nothing_offered(const LoadedProfile &loaded, Lines *notes) {
  if (loaded.file.empty() || !loaded.profile.servers.empty() || !loaded.profile.tools.empty()) {
    return;
  }
  notes->push_back(
      "the profile has no servers and no tools, so nothing is offered; to add the builtin "
      "tools, configure [tools.http] with plugin = \"builtin-http\" and [tools.files] with "
      "plugin = \"builtin-files\"");
}

// Adds the stored pins of the profile's servers. If pins are enforced, an unreadable store is an
// error: without pins, every current definition would count as approved.
std::expected<void, Lines> add_pins(Profile &profile, Lines *notes) {
  if (profile.pins.mode == PinRules::Mode::off) return {};
  auto pins = PinStore(profile.state_dir).read();
  if (pins) {
    profile.pinned = PinStore::known(*pins, pin_terms(profile));
    return {};
  }
  if (profile.pins.mode == PinRules::Mode::enforce) {
    return std::unexpected(Lines{"[pins] mode = \"enforce\": " + pins.error().text});
  }
  notes->push_back("pins: " + pins.error().text);
  return {};
}

// Adds the user layer. It is added before the layers of the configuration file, so that the file
// takes precedence.
std::expected<void, Lines> add_user_layer(const std::optional<std::string> &text,
                                          std::vector<ProfileLayer> *layers) {
  if (text.has_value()) {
    if (text->empty()) return {};
    layers->push_back({std::string(user_layer), user_layer_file(), *text});
    layers->back().lenient = true;
    return {};
  }
  auto layer = read_profile_file(user_layer_file(), std::string(user_layer));
  if (layer.has_value()) {
    // All profiles share this layer, so an invalid server in it must not prevent gateways from
    // starting.
    layer->lenient = true;
    layers->push_back(std::move(*layer));
  } else if (layer.error().code != BH_E_NOT_FOUND) {
    return std::unexpected(Lines{layer.error().text});
  }
  return {};
}

std::expected<LoadedProfile, Lines> load_used(const Arguments &arguments, Transports transports,
                                              ProfileUse values,
                                              const std::optional<std::string> &user_text) {
  LoadedProfile out;
  out.loaded_ms = bh::unix_ms();
  out.file = arguments.config;
  if (out.file.empty() && ::access(default_config_file().c_str(), F_OK) == 0) {
    out.file = default_config_file();
  }
  std::string builtin(builtin_base);
  // Both transports are added for every command, so that a file can set individual keys of either.
  builtin.append(builtin_http_transport).append(builtin_stdio_transport);
  if (transports == Transports::stdio) builtin.append(builtin_stdio_limits);
  Lines notes;
  if (out.file.empty()) add_builtin_tools(&builtin, &notes);
  std::vector<ProfileLayer> layers{{"builtin", "", std::move(builtin)}};
  const auto corp = add_corp_layer(&notes, &layers);
  if (!corp) return std::unexpected(corp.error());
  for (ProfileLayer &layer : read_detected_layers(&notes)) layers.push_back(std::move(layer));
  if (auto added = add_user_layer(user_text, &layers); !added) {
    return std::unexpected(added.error());
  }
  if (!out.file.empty()) {
    auto file = read_file_layers(out.file);
    if (!file) return std::unexpected(file.error());
    for (ProfileLayer &layer : *file) layers.push_back(std::move(layer));
  }
  if (auto added = add_project(arguments, &out, &notes, &layers); !added) {
    return std::unexpected(added.error());
  }
  auto profile = load_layers(layers, values, &out.holds);
  if (!profile) return std::unexpected(profile.error());
  if (auto fine = check_arguments(arguments, out.holds); !fine) {
    return std::unexpected(fine.error());
  }
  select_transports(*profile, transports);
  if (!arguments.listen.empty() && transports == Transports::served) {
    auto layer = listen_layer(*profile, arguments.listen);
    if (!layer) return std::unexpected(Lines{layer.error()});
    layers.push_back(std::move(*layer));
    const std::vector<PluginUse> selected = std::move(profile->transports);
    profile = load_layers(layers, values, &out.holds);
    if (!profile) return std::unexpected(profile.error());
    std::erase_if(profile->transports, [&](const PluginUse &use) {
      return std::none_of(selected.begin(), selected.end(),
                          [&](const PluginUse &one) { return one.id == use.id; });
    });
  }
  remember_corp_revision(corp->revision, &notes);
  out.profile = std::move(*profile);
  hide_unused_transports(out.profile);
  fill_in_folders(out, arguments, corp->there);
  if (auto added = add_pins(out.profile, &notes); !added) return std::unexpected(added.error());
  note_nothing_offered(out, &notes);
  // If the folder of the user's plugins did not exist, servers could not change the folder above
  // it. On a read-only file system, it cannot be created, and is not needed.
  if (arguments.serves != Arguments::Serves::nothing && arguments.plugin_dirs.empty()) {
    std::error_code ignored;
    const std::string plugins = user_plugin_dir();
    std::filesystem::create_directories(plugins.substr(0, plugins.rfind('/')), ignored);
    static_cast<void>(make_private_dir(plugins));
  }
  hide_from_servers(out.profile);
  list_programs(out.profile);
  resolve_file_folders(&out.profile);
  out.profile.identity = {out.file.empty() ? "builtin" : out.file, user_name()};
  out.profile.notes.insert(out.profile.notes.begin(), notes.begin(), notes.end());
  give_launchers_time(out.profile);
  // Only commands that serve clients load the stored lists of servers here. Some other commands
  // call load_existing_lists(), and the rest request the lists from the servers.
  if (arguments.serves != Arguments::Serves::nothing) load_stored_lists(&out.profile);
  return out;
}

// Adds a note for each name in a rule or tool list that no server or tool has.
void note_unmatched_names(Profile *profile) {
  constexpr std::size_t most = 5;
  const Lines names = unmatched_names(*profile);
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) profile->notes.push_back(names[i]);
  if (names.size() > most) {
    profile->notes.push_back(std::to_string(names.size() - most) +
                             " more names in rules and tool lists match no server or tool; run "
                             "`bulkhead policy check`");
  }
}

}  // namespace

std::uint64_t newest_change_ms(const Profile &profile) {
  std::set<std::string> files{profile.identity.profile, user_layer_file(),
                              ApprovalStore().folder() + "/servers.json"};
  for (const ServerDef &def : profile.servers) files.insert(def.origin.file);
  for (const Profile::Shown &shown : profile.shown) files.insert(shown.origin.file);
  std::uint64_t newest = 0;
  for (const std::string &file : files) {
    struct ::stat info{};
    if (file.empty() || ::stat(file.c_str(), &info) != 0) continue;
    // The time of the status change also covers files that were moved to this path.
    const timespec &at = info.st_ctim;
    newest = std::max(newest, static_cast<std::uint64_t>(at.tv_sec) * 1000 +
                                  static_cast<std::uint64_t>(at.tv_nsec) / 1'000'000);
  }
  return newest;
}

Transports transports_of(const Arguments &arguments) noexcept {
  if (arguments.serves == Arguments::Serves::stdio) return Transports::stdio;
  return arguments.no_listen ? Transports::none : Transports::served;
}

bool downloads_first(std::string_view command) {
  const std::string_view name = command.substr(command.find_last_of('/') + 1);
  return std::find(std::begin(launchers), std::end(launchers), name) != std::end(launchers);
}

std::expected<LoadedProfile, Lines> load_for(const Arguments &arguments, Transports transports,
                                             const std::optional<std::string> &user_text) {
  const ProfileUse use =
      transports == Transports::none ? ProfileUse::but_transports : ProfileUse::all;
  return load_used(arguments, transports, use, user_text);
}

std::expected<LoadedProfile, Lines> load_to_look(const Arguments &arguments,
                                                 Transports transports) {
  return load_used(arguments, transports, ProfileUse::none, std::nullopt);
}

std::expected<LoadedProfile, Lines> load_checked(const Arguments &arguments,
                                                 Transports transports) {
  auto loaded = load_for(arguments, transports);
  if (!loaded) return loaded;
  Lines wrong = check_plugins(&loaded->profile);
  if (!wrong.empty()) return std::unexpected(std::move(wrong));
  // Other commands report these names themselves.
  if (arguments.serves != Arguments::Serves::nothing) note_unmatched_names(&loaded->profile);
  return loaded;
}

std::expected<LoadedProfile, Lines> load_aggregator(const Arguments &arguments) {
  LoadedProfile out;
  std::string builtin(builtin_base);
  builtin.append(builtin_http_transport).append(builtin_stdio_transport);
  builtin.append(builtin_aggregator).append("codec = \"").append(arguments.codec).append("\"\n");
  builtin += "slow_connect_ms = " + std::to_string(launcher_connect_ms) + "\nslow_commands = [";
  for (const std::string_view name : launchers) builtin.append("\"").append(name).append("\",");
  builtin += "]\n";
  std::vector<ProfileLayer> layers{{"builtin", "", std::move(builtin)}};
  Lines notes;
  const auto corp = add_corp_layer(&notes, &layers);
  if (!corp) return std::unexpected(corp.error());
  if (!arguments.config.empty()) {
    auto file = read_file_layers(arguments.config);
    if (!file) return std::unexpected(file.error());
    for (ProfileLayer &layer : *file) layers.push_back(std::move(layer));
  }
  auto profile = load_layers(layers, ProfileUse::all, &out.holds);
  if (!profile) return std::unexpected(profile.error());
  if (auto fine = check_arguments(arguments, out.holds); !fine) {
    return std::unexpected(fine.error());
  }
  std::erase_if(profile->transports,
                [](const PluginUse &use) { return !is_builtin(use) || use.id != "aggregator"; });
  remember_corp_revision(corp->revision, &notes);
  out.profile = std::move(*profile);
  out.file = arguments.config;
  out.profile.notes.insert(out.profile.notes.begin(), notes.begin(), notes.end());
  give_launchers_time(out.profile);
  fill_in_folders(out, arguments, corp->there);
  return out;
}

}  // namespace bulkhead::program
