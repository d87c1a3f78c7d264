// The project file that a run uses: servers defined by a repository (see profile/project.hpp).
#pragma once

#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

// Returns the file of --project. Without this option, returns .bulkhead.toml or .mcp.json in the
// working folder (other folders are not searched), unless it is the file of --config. The path is
// absolute, with links in its folder resolved. Returns an empty string if there is no file or with
// --no-project.
std::string project_file(const Arguments &arguments);

}  // namespace bulkhead::program
