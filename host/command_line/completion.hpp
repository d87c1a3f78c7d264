// A bash completion script, generated from the command line's definition.
#pragma once

#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

std::string bash_completion(const CommandTree &tree);

}  // namespace bulkhead::program
