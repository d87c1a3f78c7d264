// The commands `serve` and `stdio` with several processes.
#pragma once

#include "command_line/arguments.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {

// Returns the exit code.
int run_supervised(const Arguments &arguments, LoadedProfile loaded);

}  // namespace bulkhead::program
