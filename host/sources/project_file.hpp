// The project file of a run: servers defined by a repository (see profile/project.hpp).
#pragma once

#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

// The file of --project; otherwise .bulkhead.toml or .mcp.json in the working folder (no other
// folder is searched), if it exists and is not the file of --config. Absolute, with the links of
// its folder resolved. Empty: none, or --no-project.
std::string project_file(const Arguments &arguments);

}  // namespace bulkhead::program
