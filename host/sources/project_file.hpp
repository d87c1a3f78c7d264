// Finds the project file, in which a repository defines servers (see profile/project.hpp).
#pragma once

#include <string>

#include "command_line/arguments.hpp"

namespace bulkhead::program {

// Returns the absolute path of the project file, or an empty string if there is none. Symbolic
// links are resolved in the directory but not in the file name.
//
// The file is the one named by --project. Without this option, it is .bulkhead.toml in the working
// directory or, if that does not exist, .mcp.json; but if --config names that file, there is no
// project file. --no-project disables project files.
std::string project_file(const Arguments &arguments);

}  // namespace bulkhead::program
