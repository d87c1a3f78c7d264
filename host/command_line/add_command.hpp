// Declares a subcommand with its name, its help text and the function that runs it.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

using RunCommand = int (*)(const Arguments &);

// CLI11 calls the callback of the innermost subcommand first, so the first callback sets to.run and
// the callbacks of its parents do not change it.
inline CLI::App *add_command(CLI::App &parent, Arguments &to, const std::string &name,
                             const std::string &help, RunCommand run) {
  CLI::App *command = parent.add_subcommand(name, help);
  command->callback([&to, run] {
    if (to.run == nullptr) to.run = run;
  });
  return command;
}

}  // namespace bulkhead::program
