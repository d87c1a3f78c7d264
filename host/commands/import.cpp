// import: shows the servers that other programs have configured, or writes them to a profile.
#include <unistd.h>

#include <algorithm>
#include <array>

#include "command_line/commands.hpp"
#include "commands/profile_file.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "formats/import.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

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

std::string as_json(const std::vector<FoundConfig> &found,
                    const std::vector<std::string> &secrets) {
  std::string out = R"({"configs":[)";
  for (const auto &config : found) {
    if (!out.ends_with('[')) out += ',';
    out += R"({"client":)";
    mcp::append_quoted(&out, config.client);
    out += R"(,"file":)";
    mcp::append_quoted(&out, config.file);
    if (!config.other_project.empty()) {
      out += R"(,"project":)";
      mcp::append_quoted(&out, config.other_project);
    }
    out += R"(,"servers":[)";
    for (const auto &name : config.servers) {
      if (!out.ends_with('[')) out += ',';
      mcp::append_quoted(&out, name);
    }
    out += R"(],"error":)";
    mcp::append_quoted(&out, config.error);
    out += '}';
  }
  out += R"(],"secrets":[)";
  for (const auto &secret : secrets) {
    if (!out.ends_with('[')) out += ',';
    mcp::append_quoted(&out, secret);
  }
  return out + "]}\n";
}

// The servers as a table, if no file is written.
std::string about_projects(const std::vector<FoundConfig> &found) {
  const auto other = [](const FoundConfig &config) { return !config.other_project.empty(); };
  if (std::none_of(found.begin(), found.end(), other)) return {};
  return "\nServers of other projects are not written. To write those of one, run import in its "
         "folder.\n";
}

}  // namespace

int run_import(const Arguments &arguments) {
  std::array<char, 4096> buffer;
  const char *cwd = ::getcwd(buffer.data(), buffer.size());
  const auto found = find_client_configs(home_dir(), cwd != nullptr ? cwd : "/", arguments.folder);
  std::vector<std::string> secrets;
  const std::string profile = import_profile(found, &secrets);
  if (!arguments.write_to.empty()) {
    const auto done = write_profile(arguments.write_to, profile,
                                    arguments.force ? Existing::replace : Existing::keep);
    if (!done && done.error().code == BH_E_DENIED)
      return complain(arguments.write_to + ": exists already; --force overwrites it");
    if (!done) return complain(done.error().text);
  }
  if (arguments.json) return write_stdout(as_json(found, secrets)) ? exit_ok : exit_failed;
  std::string out =
      found.empty() ? "No client on this machine has MCP servers configured.\n" : as_table(found);
  if (!arguments.write_to.empty()) {
    out += "\nWritten: " + printable(arguments.write_to) + "\n";
  } else if (!found.empty()) {
    out += "\nTo use them:  bulkhead import --write " + tilde(default_config_file()) +
           (arguments.folder ? " --folder\n" : "\n");
  }
  const bool any = std::any_of(found.begin(), found.end(), [](const FoundConfig &config) {
    return config.other_project.empty() && !config.servers.empty();
  });
  // A file of the folder may have come with a repository, so the user must review it first.
  const bool warms = !arguments.write_to.empty() && !arguments.no_warm && !arguments.folder && any;
  if (!arguments.write_to.empty() && !warms && any) {
    out += "To have their programs downloaded now:  bulkhead warm --config " +
           printable(tilde(arguments.write_to)) + "\n";
  }
  out += about_projects(found);
  if (!secrets.empty()) {
    out +=
        "\nValues that look like credentials are not copied; look the profile over for others.\n"
        "Export these before `bulkhead serve`:\n";
    for (const auto &secret : secrets) out += "  " + printable(secret) + "\n";
  }
  if (!write_stdout(out)) return exit_failed;
  if (!warms) return exit_ok;
  Arguments warm = arguments;
  warm.config = arguments.write_to;
  warm.no_project = true;  // what was imported
  if (run_warm(warm) != exit_ok)
    complain("not every server starts yet: `bulkhead doctor --config " + tilde(arguments.write_to) +
             "` says more");
  return exit_ok;
}

}  // namespace bulkhead::program
