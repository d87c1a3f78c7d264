// Composes error messages for command lines that lack an argument, or name an unknown
// command, option or argument.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace bulkhead::program {

// Returns an error message for the first unknown command, or an empty string. This message replaces
// CLI11's, which only states that a subcommand is required.
std::string unknown_command(const CLI::App &app, int argc, const char *const *argv);

// Returns an error message for the first option or argument that the command does not expect. This
// message replaces CLI11's, which lists all remaining words in reverse order. `app` must have
// parsed the command line. The message names an option without its value, which may be a
// credential.
std::string unexpected_word(const CLI::App &app);

// Returns an error message for a missing argument or command. This message replaces CLI11's, which
// does not name the command. `app` must have parsed the command line.
std::string missing_word(const CLI::App &app);

}  // namespace bulkhead::program
