// Declaring a command of the command line: its name, its help and the function that it runs stand
// in one place.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

using RunCommand = int (*)(const Arguments &);

// The command line selects `run` if no subcommand of this command has been given (which has set
// to.run already: CLI11 calls back for the innermost command first).
inline CLI::App *add_command(CLI::App &parent, Arguments &to, const std::string &name,
                             const std::string &help, RunCommand run) {
  CLI::App *command = parent.add_subcommand(name, help);
  command->callback([&to, run] {
    if (to.run == nullptr) to.run = run;
  });
  return command;
}

}  // namespace bulkhead::program
