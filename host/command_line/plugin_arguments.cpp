#include "command_line/plugin_arguments.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "command_line/add_command.hpp"
#include "command_line/commands.hpp"
#include "command_line/common_options.hpp"

namespace bulkhead::program {
namespace {

void add_new(CLI::App &plugin, Arguments &to) {
  auto *command =
      add_command(plugin, to, "new",
                  "Create the source tree of a plugin, with a test and a profile", run_plugin_new);
  // create_plugin() checks the values, and its errors list the templates that exist.
  command->add_option("kind", to.plugin.kind, "tools, policy, telemetry, connector or transport")
      ->required()
      ->type_name("KIND");
  command
      ->add_option("name", to.name,
                   "The plugin's ID: 1 to 64 of a-z, 0-9 and \"-\"; begins with a letter")
      ->required()
      ->type_name("NAME");
  command->add_option("dir", to.plugin.folder, "The folder to create (default: ./NAME)")
      ->type_name("DIR");
  command->add_option("--lang", to.plugin.language, "Language of the source (default: c++)")
      ->type_name(language_type);
  command->footer(
      "Examples:\n  bulkhead plugin new tools my-tools\n"
      "  bulkhead plugin new policy my-policy --lang c ./src/my-policy\n\n"
      "The plugin builds with CMake and the installed SDK. README.md in the folder has the\n"
      "commands that build, test, check, run and install it. If the folder exists, it must be\n"
      "empty. docs/plugins.md describes the interfaces.");
}

void add_check(CLI::App &plugin, Arguments &to) {
  auto *check = add_command(plugin, to, "check", "Check that a plugin follows the rules of the ABI",
                            run_plugin_check);
  check->add_option("file", to.plugin.file, "The library, with its manifest in the same folder")
      ->required()
      ->type_name("FILE.so");
  check->add_option("--config", to.plugin.config, "The instance's configuration (default: {})")
      ->type_name("JSON");
  check
      ->add_option("--definition", to.plugin.definition,
                   "For connectors: the definition of a server (default: {})")
      ->type_name("JSON");
  add_json(*check, to);
  check->add_flag("--junit", to.plugin.junit, "Print JUnit XML")->excludes("--json");
  check->footer(
      "Example:\n  bulkhead plugin check ./build/my-tools.so\n"
      "  bulkhead plugin check ./build/my-policy.so --config '{\"words\":\"secret\"}'\n\n"
      "The plugin runs in child processes without access to your files; only connectors and\n"
      "transports have network access. Its tools are called, with example arguments.\n"
      "Exit code: 0 all rules are satisfied; 1 a rule is violated; 2 an argument is wrong, for\n"
      "example if --config is missing; 4 some rules were not checked.\n"
      "docs/plugin-rules.md explains the rules.");
}

void add_swap(CLI::App &plugin, Arguments &to) {
  auto *swap =
      add_command(plugin, to, "swap", "Replace a plugin in the running gateways", run_plugin_swap);
  swap->add_option("id", to.name,
                   "The plugin's instance: NAME in [tools.NAME], [policies.NAME] or "
                   "[telemetry.NAME]")
      ->required()
      ->type_name("ID");
  swap->add_option("file", to.plugin.file,
                   "The new version's .so file, with its manifest in the same folder (default: the "
                   "file that the profile specifies)")
      ->type_name("FILE");
  add_json(*swap, to);
  swap->footer(
      "Example:\n  bulkhead plugin swap mine ./build/my-tools.so\n\n"
      "The new version is started beside the old one and receives calls when it is ready. The old\n"
      "version completes its calls (limits.drain_ms). If the new version fails, the old one stays\n"
      "in use. An exclusive plugin and a telemetry plugin are stopped before the new version "
      "starts;\n"
      "calls and records wait. A swap is in force until the gateway stops or the profile "
      "specifies\n"
      "another file.");
  auto *rollback =
      add_command(plugin, to, "rollback",
                  "Restore the version before the last swap (within an hour)", run_plugin_rollback);
  rollback
      ->add_option("id", to.name,
                   "The plugin's instance: NAME in [tools.NAME], [policies.NAME] or "
                   "[telemetry.NAME]")
      ->required()
      ->type_name("ID");
  add_json(*rollback, to);
  rollback->footer("Example:\n  bulkhead plugin rollback mine");
}

}  // namespace

void add_plugin(CLI::App &app, Arguments &to) {
  auto *plugin = app.add_subcommand("plugin", "Create, check, list and replace plugins");
  auto *list = add_command(*plugin, to, "list", "List installed plugins and plugins in use",
                           run_plugin_list);
  add_profile_options(*list, to);
  add_json(*list, to);
  list->footer("Example:\n  bulkhead plugin list --plugin-dir ./build/lib/bulkhead/plugins");
  add_new(*plugin, to);
  add_check(*plugin, to);
  add_swap(*plugin, to);
  plugin->require_subcommand(1);
  plugin->footer("Example:\n  bulkhead plugin list");
}

}  // namespace bulkhead::program
