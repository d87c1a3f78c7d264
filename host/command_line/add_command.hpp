// Declares a subcommand with its name, its help text and the function that runs it.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

using RunCommand = int (*)(const Arguments &);

// CLI11 calls the callback of the innermost subcommand first. That callback sets to.run, and the
// callbacks of the parent commands then leave it unchanged.
inline CLI::App *add_command(CLI::App &parent, Arguments &to, const std::string &name,
                             const std::string &help, RunCommand run) {
  CLI::App *command = parent.add_subcommand(name, help);
  command->callback([&to, run] {
    if (to.run == nullptr) to.run = run;
  });
  return command;
}

}  // namespace bulkhead::program
