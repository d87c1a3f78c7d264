// The project file of a run: servers defined by a repository (see profile/project.hpp).
#pragma once

#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

// Returns the file of --project. Otherwise returns .bulkhead.toml or .mcp.json in the working
// folder (no other folder is searched), if it exists and is not the file of --config. The path is
// absolute, with links in its folder resolved. Returns an empty string if there is no file or with
// --no-project.
std::string project_file(const Arguments &arguments);

}  // namespace bulkhead::program
