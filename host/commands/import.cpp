// Implements `import`, which shows the servers in other programs' configurations or adds them to a
// profile.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>

#include "bulkhead/cpp/json.hpp"
#include "command_line/commands.hpp"
#include "commands/edited_profile.hpp"
#include "commands/profile_file.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "formats/import.hpp"
#include "layers/merge_servers.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

using State = MergedServer::State;

struct Import {
  std::vector<FoundConfig> found;
  std::vector<ImportedServer> imported;
  std::vector<std::string> skipped;   // entries for this gateway
  std::vector<std::string> secrets;   // variables that the user must set
  std::vector<MergedServer> servers;  // set with --write
};

// The configuration of another client, and the servers in it that the gateway will start as well.
struct StartedTwice {
  const FoundConfig *config;
  std::vector<std::string> servers;  // server names in that configuration
};

std::vector<StartedTwice> started_twice(const Import &import) {
  std::vector<StartedTwice> out;
  for (std::size_t i = 0; i < import.found.size(); ++i) {
    StartedTwice one{&import.found[i], {}};
    for (const MergedServer &server : import.servers) {
      const bool other = server.state == State::differs || server.state == State::refused;
      if (other || server.disabled) continue;
      for (const auto &[config, name] : server.from->places) {
        if (config == i) one.servers.push_back(name);
      }
    }
    if (!one.servers.empty()) out.push_back(std::move(one));
  }
  return out;
}

std::string listed(const std::vector<std::string> &texts) {
  std::string out;
  for (const std::string &text : texts) out += (out.empty() ? "" : ", ") + printable(text);
  return out;
}

std::string as_table(const std::vector<FoundConfig> &found) {
  Table table({"CLIENT", "FILE", "SERVER", "COMMAND"});
  for (const auto &config : found) {
    std::string file = printable(tilde(config.file));
    if (!config.other_project.empty()) {
      file += " of " + printable(tilde(config.other_project));
    }
    if (!config.error.empty()) {
      table.add({config.client, file, "not read: " + printable(config.error), ""});
    }
    for (std::size_t i = 0; i < config.servers.size(); ++i) {
      table.add({config.client, file, printable(config.servers[i]),
                 first_line(printable(config.commands[i]), 100)});
    }
  }
  return table.str();
}

std::string as_json(const Import &import, bool written) {
  std::string out;
  bh::json::Writer json(&out);
  json.begin_object().key("configs").begin_array();
  for (const FoundConfig &config : import.found) {
    json.begin_object().member("client", config.client).member("file", config.file);
    if (!config.other_project.empty()) json.member("project", config.other_project);
    json.member("servers", config.servers).member("error", config.error).end_object();
  }
  json.end_array().member("secrets", import.secrets).member("skipped", import.skipped);
  if (written) {
    json.key("servers").begin_array();
    for (const MergedServer &server : import.servers) {
      json.begin_object().member("name", server.name).member("state", to_string(server.state));
      json.member("differences", server.differences);
      if (!server.from->same_as.empty()) json.member("same_as", server.from->same_as);
      json.end_object();
    }
    json.end_array().key("started_twice").begin_array();
    for (const StartedTwice &one : started_twice(import)) {
      json.begin_object().member("client", one.config->client).member("file", one.config->file);
      json.member("servers", one.servers).end_object();
    }
    json.end_array();
  }
  json.end_object();
  return out + "\n";
}

std::string about_projects(const std::vector<FoundConfig> &found) {
  const auto other = [](const FoundConfig &config) { return !config.other_project.empty(); };
  if (std::none_of(found.begin(), found.end(), other)) return {};
  return "\nServers of other projects are not imported. To import them, run `bulkhead import` in "
         "the\nfolder of each project.\n";
}

std::vector<std::string> names_in(const Import &import, State state) {
  std::vector<std::string> out;
  for (const MergedServer &server : import.servers)
    if (server.state == state) out.push_back(server.name);
  return out;
}

std::string about_servers(const Import &import) {
  std::string out;
  const auto line = [&](std::string_view text, State state) {
    if (const auto names = names_in(import, state); !names.empty())
      out += std::string(text) + listed(names) + "\n";
  };
  line("Added: ", State::added);
  line("Already in the profile, kept: ", State::kept);
  for (const MergedServer &server : import.servers) {
    const FoundConfig &config = import.found[server.from->config];
    const std::string there = printable(config.client + ", " + tilde(config.file));
    const std::string name = printable(server.name);
    if (server.state == State::differs)
      out += "Not changed: " + name + " has a different definition in " + there +
             " (differs in: " + listed(server.differences) + "); use --force to replace it\n";
    if (server.state == State::replaced)
      out += "Replaced: " + name + " by the definition in " + there +
             " (differed in: " + listed(server.differences) + ")\n";
    if (server.state == State::added && !server.from->same_as.empty() && server.disabled)
      out += name + " starts the same program as " + printable(server.from->same_as) +
             " (differs in: " + listed(server.from->differences) + "); it was added as disabled\n";
    if (server.state == State::refused)
      out += "Left out: " + name + " in " + there + ": " + printable(server.from->refused) + "\n";
  }
  return out;
}

// Returns the entry with which the client starts `bulkhead stdio`. Returns an empty string for
// clients that connect over HTTP: `bulkhead serve` prints their entries with the address. `path` is
// the profile.
std::string client_entry(const std::string &client, const std::string &path) {
  for (const std::string_view served : {"Claude Code", "VS Code", "Cursor", "Gemini CLI"})
    if (client == served) return {};
  std::array<char, 4096> buffer;
  const ssize_t size = ::readlink("/proc/self/exe", buffer.data(), buffer.size());
  const std::string program =
      size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : "bulkhead";
  std::vector<std::string> args{"stdio"};
  if (path != default_config_file()) args.insert(args.end(), {"--config", path});
  std::string list;
  for (const std::string &arg : args) list += (list.empty() ? "" : ", ") + bh::json::quoted(arg);
  if (client == "Codex") {
    return "[mcp_servers.bulkhead]\n    command = " + bh::json::quoted(program) + "\n    args = [" +
           list + "]";
  }
  const bool zed = client == "Zed";
  return std::string(zed ? R"({ "context_servers": { "bulkhead": { "source": "custom", )"
                         : R"({ "mcpServers": { "bulkhead": { )") +
         R"("command": )" + bh::json::quoted(program) + R"(, "args": [)" + list + "] } } }";
}

std::string about_twice(const Import &import, const std::string &path) {
  const auto twice = started_twice(import);
  if (twice.empty()) return {};
  std::string out =
      "\nThese clients still start servers of the profile themselves, so these servers run "
      "twice:\n";
  Table table({"CLIENT", "FILE", "SERVERS"});
  for (const StartedTwice &one : twice)
    table.add({one.config->client, printable(tilde(one.config->file)), listed(one.servers)});
  out +=
      table.str() +
      "Remove these entries from the files, connect each client to Bulkhead instead, and restart "
      "the\nclient. Entries:\n";
  std::set<std::string> named;
  std::string served;
  for (const StartedTwice &one : twice) {
    const std::string &client = one.config->client;
    if (!named.insert(client).second) continue;
    const std::string entry = client_entry(client, path);
    if (entry.empty()) {
      served += (served.empty() ? "" : ", ") + client;
    } else {
      out += "  " + client + "\n    " + entry + "\n";
    }
  }
  if (!served.empty()) out += "  " + served + ": `bulkhead serve` prints the entry\n";
  return out;
}

// Adds the servers to the profile. If this fails, prints the error and returns an exit code other
// than exit_ok.
int write_to(const std::string &path, const Arguments &arguments,
             const std::vector<std::string> &listens, Import *import) {
  auto edited = open_profile(path);
  if (!edited) return profile_unchanged(path, edited.error());
  auto merge = merge_servers(edited->layer, import->imported, arguments.force);
  if (!merge) return profile_unchanged(path, merge.error());
  import->servers = std::move(merge->servers);
  for (const MergedServer &server : import->servers) {
    if (server.state != State::added && server.state != State::replaced) continue;
    if (server.disabled && !server.from->same_as.empty()) continue;  // not needed until enabled
    for (const std::string &secret : server.from->variables) {
      if (std::find(import->secrets.begin(), import->secrets.end(), secret) ==
          import->secrets.end())
        import->secrets.push_back(secret);
    }
  }
  if (edited->is_new) {
    // A new TOML file also contains the omitted servers as comments.
    const bool json = path.ends_with(".json");
    const std::string text = json ? merge->text : import_profile(import->found, nullptr, listens);
    auto done = write_profile(path, text, Existing::keep);
    return done ? exit_ok : complain(done.error().text);
  }
  if (merge->text == edited->layer.text) return exit_ok;
  if (const auto loaded = DraftProfile(path, merge->text).load(arguments); !loaded)
    return profile_unchanged(path, loaded.error());
  auto done = write_profile(path, merge->text, Existing::replace);
  return done ? exit_ok : profile_unchanged(path, done.error());
}

void warm_written(const Arguments &arguments, const std::string &path,
                  std::vector<std::string> names) {
  Arguments warm = looking_at(arguments, path);
  warm.names = std::move(names);
  if (run_warm(warm) != exit_ok)
    complain("some servers did not start; for details, run `bulkhead doctor --config " +
             tilde(path) + "`");
}

}  // namespace

int run_import(const Arguments &arguments) {
  std::array<char, 4096> buffer;
  const char *cwd = ::getcwd(buffer.data(), buffer.size());
  const bool writes = !arguments.write_to.empty();
  const std::string path = writes ? resolved_path(arguments.write_to) : std::string();
  Import import;
  import.found = find_client_configs(home_dir(), cwd != nullptr ? cwd : "/", arguments.folder);
  const std::vector<std::string> listens = own_addresses(arguments, path);
  import.imported = import_servers(import.found, listens, &import.skipped);
  if (!writes) {
    import_profile(import.found, &import.secrets, listens);
  } else if (const int failed = write_to(path, arguments, listens, &import); failed != exit_ok) {
    return failed;
  }
  if (arguments.json) return write_stdout(as_json(import, writes)) ? exit_ok : exit_failed;
  std::string out = import.found.empty() ? "No client on this machine has MCP servers configured.\n"
                                         : as_table(import.found);
  for (const std::string &name : import.skipped)
    out += "skipped " + printable(name) + ": it is this gateway\n";
  std::vector<std::string> written = names_in(import, State::added);
  for (std::string &name : names_in(import, State::replaced)) written.push_back(std::move(name));
  if (writes) {
    out += "\n" + std::string(written.empty() ? "Unchanged: " : "Written: ") +
           printable(tilde(path)) + "\n" + about_servers(import);
  } else if (!import.imported.empty()) {
    out += "\nTo use them:  bulkhead import --write " + tilde(default_config_file()) +
           (arguments.folder ? " --folder\n" : "\n");
  }
  // Files in the working directory may come from a repository, so the user must review the servers
  // before their programs are downloaded.
  const bool warms = !written.empty() && !arguments.no_warm && !arguments.folder;
  if (!written.empty() && !warms) {
    out +=
        "To download their programs now:  bulkhead warm --config " + printable(tilde(path)) + "\n";
  }
  out += about_projects(import.found);
  out += about_twice(import, path);
  if (!import.secrets.empty()) {
    out += "\nValues that look like credentials are not copied; check the profile for others.\n";
    std::string unset;
    for (const auto &line : import.secrets) {
      const std::string name = line.substr(0, line.find(' '));
      const std::string_view from = std::string_view(line).substr(name.size());  // " from FILE"
      if (::getenv(name.c_str()) != nullptr) continue;
      const std::size_t file = std::min(from.find('/'), from.size());
      unset += "  " +
               printable(name + std::string(from.substr(0, file)) + tilde(from.substr(file))) +
               "\n";
    }
    if (!unset.empty()) out += "Set these variables before `bulkhead serve`:\n" + unset;
  }
  if (!write_stdout(out)) return exit_failed;
  if (!written.empty()) mention_reload(path);
  if (warms) warm_written(arguments, path, std::move(written));
  return exit_ok;
}

}  // namespace bulkhead::program
