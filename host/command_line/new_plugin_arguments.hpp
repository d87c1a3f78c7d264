// Defines the arguments of `bulkhead plugin new`, which creates the source tree of a plugin.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace bulkhead::program {

struct NewPluginArguments {
  std::string kind;              // tools, policy, telemetry, connector or transport
  std::string language = "c++";  // or "c"
  std::string folder;            // empty: the plugin's name, in the working directory
};

constexpr const char *language_type = "c|c++";

struct Arguments;
void add_plugin_new(CLI::App &plugin, Arguments &to);

}  // namespace bulkhead::program
