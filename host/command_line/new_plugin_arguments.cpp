#include "command_line/new_plugin_arguments.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "command_line/add_command.hpp"
#include "command_line/commands.hpp"

namespace bulkhead::program {

void add_plugin_new(CLI::App &plugin, Arguments &to) {
  auto *command =
      add_command(plugin, to, "new",
                  "Create the source tree of a plugin, with a test and a profile", run_plugin_new);
  // create_plugin() checks the values, and its errors list the templates that exist.
  command
      ->add_option("kind", to.new_plugin.kind, "tools, policy, telemetry, connector or transport")
      ->required()
      ->type_name("KIND");
  command
      ->add_option("name", to.name,
                   "The plugin's ID: 1 to 64 of a-z, 0-9 and \"-\"; begins with a letter")
      ->required()
      ->type_name("NAME");
  command->add_option("dir", to.new_plugin.folder, "The folder to create (default: ./NAME)")
      ->type_name("DIR");
  command->add_option("--lang", to.new_plugin.language, "Language of the source (default: c++)")
      ->type_name(language_type);
  command->footer(
      "Examples:\n  bulkhead plugin new tools my-tools\n"
      "  bulkhead plugin new policy my-policy --lang c ./src/my-policy\n\n"
      "The plugin builds with CMake and the installed SDK. README.md in the folder has the\n"
      "commands that build, test, check, run and install it. If the folder exists, it must be\n"
      "empty. docs/plugins.md describes the interfaces.");
}

}  // namespace bulkhead::program
