// Declares a command of the command line: its name, its help and the function that it runs.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

using RunCommand = int (*)(const Arguments &);

// The command line selects `run` unless a subcommand has already set to.run: CLI11 calls the
// innermost command's callback first.
inline CLI::App *add_command(CLI::App &parent, Arguments &to, const std::string &name,
                             const std::string &help, RunCommand run) {
  CLI::App *command = parent.add_subcommand(name, help);
  command->callback([&to, run] {
    if (to.run == nullptr) to.run = run;
  });
  return command;
}

}  // namespace bulkhead::program
