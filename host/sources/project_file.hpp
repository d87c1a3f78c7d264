// The project file of a run: servers that came with a repository (see layers/project.hpp).
#pragma once

#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

// The file of --project; else .bulkhead.toml, else .mcp.json in the working folder (no other folder
// is looked at), if it is there and is not the file of --config. Absolute, with the links of its
// folder resolved. Empty: there is none, or --no-project.
std::string project_file(const Arguments &arguments);

}  // namespace bulkhead::program
