// Defines the arguments of `bulkhead plugin`, which creates, checks, lists and replaces plugins.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace bulkhead::program {

struct PluginArguments {
  std::string kind;              // new: tools, policy, telemetry, connector or transport
  std::string language = "c++";  // new: or "c"
  std::string folder;            // new; empty: the plugin's name, in the working directory
  // swap (empty: the file in the profile), check, add; verify: a file or an ID
  std::string file;
  std::string signature;           // add, verify; empty: the file beside the library
  bool dry_run = false;            // add, remove
  bool allow_older = false;        // add
  bool clear = false;              // verify
  std::string config, definition;  // check: JSON objects; empty: {}
  bool junit = false;              // check
};

constexpr const char *language_type = "c|c++";

struct Arguments;
void add_plugin(CLI::App &app, Arguments &to);

}  // namespace bulkhead::program
