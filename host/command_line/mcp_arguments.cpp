#include "command_line/mcp_arguments.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <string>

#include "command_line/add_command.hpp"
#include "command_line/commands.hpp"

namespace bulkhead::program {
namespace {

constexpr const char *reloads =
    "\n\nRun `bulkhead reload` to apply the change to a running gateway.";

void add_file(CLI::App &app, Arguments &to) {
  app.add_option("-c,--config", to.config,
                 "Profile, TOML or JSON (default: ~/.config/bulkhead/profile.toml)")
      ->type_name("FILE");
}

std::string check_variable(const std::string &text) {
  const std::size_t equals = text.find('=');
  return equals != std::string::npos && equals != 0 ? std::string{}
                                                    : "must have the form KEY=VALUE";
}

std::string check_header(const std::string &text) {
  const std::size_t colon = text.find(':');
  return colon != std::string::npos && colon != 0 ? std::string{}
                                                  : "must have the form \"Name: value\"";
}

void add_add(CLI::App &mcp, Arguments &to) {
  auto *add = add_command(mcp, to, "add", "Add a server to the profile", run_mcp_add);
  add->add_option("name", to.name, "Name of the server")->required()->type_name("NAME");
  add->add_option("server_url", to.mcp.word, "URL of an HTTP server")->type_name("URL");
  add->add_option("--url", to.mcp.url, "URL of an HTTP server, instead of a command")
      ->type_name("URL");
  add->add_option("-e,--env", to.mcp.env, "Environment variable (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->check(CLI::Validator(check_variable, "", "variable"));
  add->add_option("-H,--header", to.mcp.headers, "HTTP header to send to the server (repeatable)")
      ->type_name("'NAME: VALUE'")
      ->allow_extra_args(false)
      ->check(CLI::Validator(check_header, "", "header"));
  add->add_option("--cwd", to.mcp.cwd, "Working directory")->type_name("DIR");
  add->add_flag("--no-warm", to.no_warm, "Do not start the server now");
  add_file(*add, to);
  add->footer(
      "The command of a stdio server follows --:\n  bulkhead mcp add [OPTIONS] NAME -- "
      "COMMAND [ARG...]\n\nExamples:\n"
      "  bulkhead mcp add files -- npx -y @modelcontextprotocol/server-filesystem ~/work\n"
      "  bulkhead mcp add github https://api.githubcopilot.com/mcp/ \\\n"
      "      --header 'Authorization: Bearer ${env:GITHUB_TOKEN}'\n\n"
      "The rest of the file is unchanged, and the file is written only if it is valid. The server\n"
      "is started once, as with `bulkhead warm`, to download its program. Use ${env:NAME} for\n"
      "credentials: the gateway reads the variable when it starts.");
}

}  // namespace

int read_program(int argc, const char *const *argv, McpArguments *to) {
  if (argc < 3 || std::string_view(argv[1]) != "mcp" || std::string_view(argv[2]) != "add")
    return argc;
  for (int i = 3; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--") continue;
    to->command.assign(argv + i + 1, argv + argc);
    return i;
  }
  return argc;
}

void add_mcp(CLI::App &app, Arguments &to) {
  auto *mcp = app.add_subcommand("mcp", "List and edit the servers of the profile");
  auto *list =
      add_command(*mcp, to, "list", "List the servers; credentials are masked", run_mcp_list);
  add_file(*list, to);
  list->add_flag("--json", to.json, "Print JSON");
  list->footer("Example:\n  bulkhead mcp list --json");
  add_add(*mcp, to);
  const auto edit = [&](const char *name, const char *help, RunCommand run, const char *more) {
    auto *command = add_command(*mcp, to, name, help, run);
    command->add_option("name", to.name, "Name of the server")->required()->type_name("NAME");
    add_file(*command, to);
    command->footer(std::string("Example:\n  bulkhead mcp ") + name + " files" + more);
  };
  edit("remove", "Remove a server from the profile", run_mcp_remove, "");
  edit("disable", "Disable a server but keep it in the profile", run_mcp_disable, reloads);
  edit("enable", "Enable a disabled server", run_mcp_enable, reloads);
  auto *restart =
      add_command(*mcp, to, "restart", "Restart a server in the running gateways", run_mcp_restart);
  restart->add_option("name", to.name, "Name of the server")->required()->type_name("NAME");
  restart->add_flag("--json", to.json, "Print JSON");
  restart->footer(
      "Example:\n  bulkhead mcp restart files\n\n"
      "Reloads the configuration. A new process or session is opened while in-flight calls finish\n"
      "in the old one. Exit codes are the same as for `bulkhead reload`.");
  mcp->require_subcommand(1);
  mcp->footer("Example:\n  bulkhead mcp add time -- uvx mcp-server-time");
}

}  // namespace bulkhead::program
