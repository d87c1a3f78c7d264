// Defines the arguments of `bulkhead plugin`, which lists, checks and replaces plugins.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace bulkhead::program {

struct PluginArguments {
  std::string file;                // swap (empty: the file in the profile), check
  std::string config, definition;  // check: JSON objects; empty: {}
  bool junit = false;              // check
};

struct Arguments;
void add_plugin(CLI::App &app, Arguments &to);

}  // namespace bulkhead::program
