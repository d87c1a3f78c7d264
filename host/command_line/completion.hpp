// A bash completion script, made from the command line's own description.
#pragma once

#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

std::string bash_completion(const CommandTree &tree);

}  // namespace bulkhead::program
