// Implements `mcp`, which lists and edits the servers in a profile.
#include <algorithm>
#include <string>
#include <vector>

#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "commands/edited_profile.hpp"
#include "commands/profile_file.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "formats/own_address.hpp"
#include "layers/edit_servers.hpp"
#include "mcp/scan.hpp"
#include "profile/secrets.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {
namespace {

// ---- list ------------------------------------------------------------------------------------

std::string runs(const ServerDef &def) {
  if (!def.url.empty()) return profiles::masked_url(def.url);
  std::string out = def.command;
  for (const std::string &arg : profiles::masked_args(def.args)) out += ' ' + arg;
  return out;
}

std::string state_of(const ServerDef &def) {
  if (!def.disabled) return def.lazy ? "lazy" : "enabled";
  return "disabled" + (def.disabled_reason.empty() ? "" : ": " + def.disabled_reason);
}

std::string place_of(const ServerDef &def) {
  const Origin &at = def.origin;
  if (at.file.empty()) return at.layer;
  return tilde(at.file) + (at.line == 0 ? "" : ":" + std::to_string(at.line));
}

std::string as_table(const std::vector<ServerDef> &servers) {
  if (servers.empty()) return "No servers are configured. To add one: bulkhead mcp add --help\n";
  Table table({"SERVER", "STATE", "RUNS", "FROM"});
  for (const ServerDef &def : servers) {
    table.add({printable(def.name), first_line(printable(state_of(def)), 60),
               first_line(printable(runs(def)), 100), printable(place_of(def))});
  }
  return table.str();
}

std::string as_json(const std::vector<ServerDef> &servers) {
  std::string out = R"({"servers":[)";
  for (const ServerDef &def : servers) {
    if (!out.ends_with('[')) out += ',';
    out += '{';
    bh::json::append_member(&out, "name", def.name);
    bh::json::append_member(&out, "type", def.type);
    bh::json::append_member(&out, "runs", runs(def));
    bh::json::append_member(&out, "disabled", def.disabled);
    bh::json::append_member(&out, "reason", def.disabled_reason);
    bh::json::append_member(&out, "layer", def.origin.layer);
    bh::json::append_member(&out, "file", def.origin.file);
    bh::json::append_member(&out, "line", def.origin.line);
    out += '}';
  }
  return out + "]}\n";
}

int list_servers(const Arguments &arguments) {
  const auto loaded = load_to_look(arguments, Transports::none);
  if (!loaded) return report_config_errors(loaded.error());
  const auto &servers = loaded->profile.servers;
  return write_stdout(arguments.json ? as_json(servers) : as_table(servers)) ? exit_ok
                                                                             : exit_failed;
}

// ---- the file --------------------------------------------------------------------------------

std::string profile_of(const Arguments &arguments) {
  return resolved_path(arguments.config.empty() ? default_config_file() : arguments.config);
}

// ---- add -------------------------------------------------------------------------------------

std::pair<std::string, std::string> split(const std::string &text, char at) {
  const std::size_t i = text.find(at);
  std::string value = text.substr(i + 1);
  if (at == ':') value.erase(0, value.find_first_not_of(" \t"));
  return {text.substr(0, i), value};
}

bool is_url(const std::string &text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

// Reads a server's definition from the arguments. Returns a usage error, or an empty string on
// success.
std::string read_server(const Arguments &arguments, NewServer *out) {
  const McpArguments &from = arguments.mcp;
  out->name = arguments.name;
  out->url = from.url.empty() ? from.word : from.url;
  out->cwd = from.cwd;
  const std::string how = "bulkhead mcp add " + arguments.name + " -- COMMAND ...";
  if (!from.word.empty() && !is_url(from.word) && from.url.empty())
    return "\"" + from.word + "\" is not a URL; put a command after --: " + how;
  if (out->url.empty() && from.command.empty()) return "specify a command (" + how + ") or a URL";
  if (!out->url.empty() && !from.command.empty()) return "specify a command or a URL, not both";
  if (out->url.empty() && !from.headers.empty()) return "--header requires a URL";
  if (!out->url.empty() && !(from.env.empty() && from.cwd.empty()))
    return "--env and --cwd require a command";
  if (!from.command.empty()) {
    out->command = from.command.front();
    out->args.assign(from.command.begin() + 1, from.command.end());
  }
  for (const std::string &text : from.env) out->env.push_back(split(text, '='));
  for (const std::string &text : from.headers) out->headers.push_back(split(text, ':'));
  return {};
}

bool holds_credential(const NewServer &server) {
  const auto secret = [](const auto &pair) {
    const auto &[name, value] = pair;
    return value.find("${") == std::string::npos &&
           (profiles::credential_name(name) || profiles::credential_value(value));
  };
  return std::any_of(server.env.begin(), server.env.end(), secret) ||
         std::any_of(server.headers.begin(), server.headers.end(), secret) ||
         profiles::masked_args(server.args) != server.args ||
         profiles::masked_url(server.url) != server.url;
}

const ServerDef *find(const Profile &profile, const std::string &name) {
  const auto at = std::find_if(profile.servers.begin(), profile.servers.end(),
                               [&](const ServerDef &def) { return def.name == name; });
  return at == profile.servers.end() ? nullptr : &*at;
}

int warm(const Arguments &arguments, const std::string &path) {
  Arguments next = looking_at(arguments, path);
  next.names = {arguments.name};
  if (run_warm(next) != exit_ok) {
    complain("server " + arguments.name +
             " was added, but it did not start; run `bulkhead doctor` for details");
  }
  return exit_ok;
}

// Adds the server to the file and returns its loaded definition. On error, prints the error and
// returns nullopt.
std::optional<ServerDef> add_to(const std::string &path, const Arguments &arguments,
                                const NewServer &server) {
  auto edited = open_profile(path);
  if (!edited) return profile_unchanged(path, edited.error()), std::nullopt;
  if (!edited->is_new) {
    const auto before = load_to_look(looking_at(arguments, path), Transports::none);
    if (!before) return profile_unchanged(path, before.error()), std::nullopt;
    const ServerDef *known = find(before->profile, server.name);
    if (known != nullptr && resolved_path(known->origin.file) != path) {
      complain("server " + server.name + " already exists in " + place_of(*known));
      return std::nullopt;
    }
  }
  auto text = file_with_server(edited->layer, server);
  if (!text) {
    const bool known = text.error().code == BH_E_DENIED;
    if (known) text.error().text += "; remove it with `bulkhead mcp remove " + server.name + "`";
    return profile_unchanged(path, text.error()), std::nullopt;
  }
  const auto loaded = DraftProfile(path, *text).load(arguments);
  if (!loaded) return profile_unchanged(path, loaded.error()), std::nullopt;
  const ServerDef *def = find(loaded->profile, server.name);
  if (def == nullptr) {
    for (const std::string &note : loaded->profile.notes) complain(note);
    complain("server " + server.name + " would not be used; " + tilde(path) + " was not changed");
    return std::nullopt;
  }
  if (auto done = write_profile(path, *text, Existing::replace); !done)
    return profile_unchanged(path, done.error()), std::nullopt;
  write_stdout("Added server " + server.name + " to " + tilde(path) +
               (edited->is_new ? ", a new file.\n" : ".\n"));
  return *def;
}

bool is_own(const NewServer &server, const std::vector<std::string> &listens) {
  std::vector<std::string_view> words{server.url.empty() ? server.command : server.url};
  words.insert(words.end(), server.args.begin(), server.args.end());
  return is_this_gateway(words, listens);
}

int add(const Arguments &arguments, const std::string &path) {
  NewServer server;
  if (const std::string why = read_server(arguments, &server); !why.empty())
    return complain(why, exit_usage);
  if (is_own(server, own_addresses(arguments, path)))
    return complain("skipped " + server.name + ": it is this gateway");
  const auto def = add_to(path, arguments, server);
  if (!def) return exit_failed;
  if (holds_credential(server)) {
    complain("a value that looks like a credential is stored in the file; use ${env:NAME} instead",
             exit_ok);
  }
  mention_reload(path);
  if (def->disabled) {
    complain("the server is disabled: " + def->disabled_reason, exit_ok);
  } else if (!arguments.no_warm) {
    return warm(arguments, path);
  }
  return exit_ok;
}

// ---- remove, enable, disable -----------------------------------------------------------------

// Prints that the server is not defined in this file, and where it is defined.
int not_there(const Arguments &arguments, const std::string &path) {
  std::string names;
  if (const auto loaded = load_to_look(looking_at(arguments, path), Transports::none)) {
    if (const ServerDef *def = find(loaded->profile, arguments.name)) {
      return complain("server " + arguments.name + " is defined in " + place_of(*def) +
                      ", not in " + tilde(path));
    }
    for (const ServerDef &def : loaded->profile.servers)
      names += (names.empty() ? "" : ", ") + def.name;
  }
  return complain(tilde(path) + " has no server \"" + arguments.name + "\"; " +
                  (names.empty() ? "no servers are configured" : "configured servers: " + names));
}

using Edit = Result<std::string> (*)(const ProfileLayer &file, std::string_view name);

// Edits a server in the profile. `done` and `place` are parts of the success message, for example
// "Removed server" and "from" in "Removed server NAME from FILE".
int edit(const Arguments &arguments, Edit change, std::string_view done, std::string_view place) {
  const std::string path = profile_of(arguments);
  auto edited = open_profile(path);
  if (!edited) return profile_unchanged(path, edited.error());
  if (edited->is_new) return complain(tilde(path) + ": no such file");
  const auto text = change(edited->layer, arguments.name);
  if (!text && text.error().code == BH_E_NOT_FOUND) return not_there(arguments, path);
  if (!text) return profile_unchanged(path, text.error());
  const std::string what =
      std::string(done) + " " + arguments.name + " " + std::string(place) + " " + tilde(path);
  if (*text == edited->layer.text)
    return write_stdout("Server " + arguments.name + " in " + tilde(path) +
                        " already has this setting.\n")
               ? exit_ok
               : exit_failed;
  // If the profile already has errors, it can still be edited. If it has none, the change must not
  // introduce any.
  const auto before = load_to_look(looking_at(arguments, path), Transports::none);
  if (const auto loaded = DraftProfile(path, *text).load(arguments); !loaded && before)
    return profile_unchanged(path, loaded.error());
  if (auto written = write_profile(path, *text, Existing::replace); !written)
    return profile_unchanged(path, written.error());
  write_stdout(what + ".\n");
  mention_reload(path);
  return exit_ok;
}

}  // namespace

int run_mcp_list(const Arguments &arguments) {
  return list_servers(arguments);
}
int run_mcp_add(const Arguments &arguments) {
  return add(arguments, profile_of(arguments));
}
int run_mcp_remove(const Arguments &arguments) {
  return edit(arguments, file_without_server, "Removed server", "from");
}
int run_mcp_enable(const Arguments &arguments) {
  return edit(
      arguments,
      [](const ProfileLayer &file, std::string_view name) {
        return file_with_disabled(file, name, false);
      },
      "Enabled server", "in");
}
int run_mcp_disable(const Arguments &arguments) {
  return edit(
      arguments,
      [](const ProfileLayer &file, std::string_view name) {
        return file_with_disabled(file, name, true);
      },
      "Disabled server", "in");
}

}  // namespace bulkhead::program
