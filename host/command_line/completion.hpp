// Generates a bash completion script from the definition of the command line.
#pragma once

#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

std::string bash_completion(const CommandTree &tree);

}  // namespace bulkhead::program
