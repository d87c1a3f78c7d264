// Values of env and headers for a person who has to say yes: what decides which program runs, and
// which folders its sandbox opens, is shown; what looks like a credential is not.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/project.hpp"

namespace bulkhead::program {

// A credential: references (${env:NAME}) as they are; of each piece between them, and of defaults,
// the first three characters if there are more than 8, and "***". Hidden characters are \u escapes.
std::string masked_value(std::string_view value);

// What is shown instead of this value, or nothing if all of it is to be shown. Masked are values
// that look like credentials by themselves or by their name, except where the name decides what
// runs (PATH, LD_*, NODE_OPTIONS ...) or the value may be an absolute path, which the sandbox
// opens.
std::optional<std::string> masked_setting(std::string_view name, std::string_view value);

// The absolute paths that args and env name, which the sandbox will open: with the references that
// can be resolved now, except those whose names look like credentials. Not looked up in the file
// system; `.` and `..` are resolved by name. At most 100.
std::vector<std::string> named_paths(const ProjectEntry &entry);

}  // namespace bulkhead::program
