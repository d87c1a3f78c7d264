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

void add_signature(CLI::App &command, Arguments &to) {
  command
      .add_option("--sig", to.plugin.signature,
                  "The minisign signature (default: FILE.so.minisig, if it exists)")
      ->type_name("FILE");
}

void add_store(CLI::App &plugin, Arguments &to) {
  auto *add = add_command(plugin, to, "add", "Install a plugin for this user", run_plugin_add);
  add->add_option("file", to.plugin.file, "The library, with its manifest in the same folder")
      ->required()
      ->type_name("FILE.so");
  add_signature(*add, to);
  add->add_flag("--allow-older", to.plugin.allow_older,
                "Permit a version older than the installed one");
  add->add_flag("--dry-run", to.plugin.dry_run, "Verify the plugin, but change nothing");
  add_profile_options(*add, to);
  add_json(*add, to);
  add->footer(
      "Examples:\n  bulkhead plugin add ./my-tools.so\n"
      "  bulkhead plugin add ./my-tools.so --sig ./downloads/my-tools.minisig --dry-run\n\n"
      "The plugin is verified ([plugin_trust] in the profile) and copied to\n"
      "~/.local/share/bulkhead/plugins ($XDG_DATA_HOME/bulkhead/plugins). A profile refers to it\n"
      "by its ID. The previous version is replaced in one step.");
  auto *remove =
      add_command(plugin, to, "remove", "Remove a plugin of this user", run_plugin_remove);
  remove->add_option("id", to.name, "The plugin's ID")->required()->type_name("ID");
  remove->add_flag("--dry-run", to.plugin.dry_run, "Show what would be removed");
  add_profile_options(*remove, to);
  add_json(*remove, to);
  remove->footer(
      "Example:\n  bulkhead plugin remove my-tools\n\n"
      "A plugin that the profile uses is not removed.");
}

void add_verify(CLI::App &plugin, Arguments &to) {
  auto *verify =
      add_command(plugin, to, "verify", "Verify a plugin's signature, or lift its quarantine",
                  run_plugin_verify);
  verify->add_option("plugin", to.plugin.file, "A library, or the ID of an installed plugin")
      ->required()
      ->type_name("FILE|ID");
  add_signature(*verify, to);
  verify
      ->add_flag("--clear", to.plugin.clear,
                 "Permit a plugin again that is quarantined because it crashed or hung")
      ->excludes("--sig");
  add_profile_options(*verify, to);
  add_json(*verify, to);
  verify->footer(
      "Examples:\n  bulkhead plugin verify ./my-tools.so\n"
      "  bulkhead plugin verify --clear my-tools\n\n"
      "The plugin is verified as if it were loaded, but none of its code runs. If it is not\n"
      "signed, the output has the minisign command that signs it. Exit code: 0 the plugin can be\n"
      "loaded; 1 it is rejected. docs/plugins.md describes signatures.");
  auto *log =
      add_command(plugin, to, "log", "Show changes to the installed plugins", run_plugin_log);
  add_profile_options(*log, to);
  add_json(*log, to);
  log->footer("Example:\n  bulkhead plugin log");
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
  auto *plugin = app.add_subcommand("plugin", "Create, check, install, verify and replace plugins");
  auto *list = add_command(*plugin, to, "list", "List installed plugins and plugins in use",
                           run_plugin_list);
  add_profile_options(*list, to);
  add_json(*list, to);
  list->footer("Example:\n  bulkhead plugin list --plugin-dir ./build/lib/bulkhead/plugins");
  add_new(*plugin, to);
  add_check(*plugin, to);
  add_store(*plugin, to);
  add_verify(*plugin, to);
  add_swap(*plugin, to);
  plugin->require_subcommand(1);
  plugin->footer("Example:\n  bulkhead plugin list");
}

}  // namespace bulkhead::program
