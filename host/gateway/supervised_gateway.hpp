// Runs `serve` or `stdio` with one process per compartment. Returns the exit code.
#pragma once

#include "command_line/arguments.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {

int run_supervised(const Arguments &arguments, LoadedProfile loaded);

}  // namespace bulkhead::program
