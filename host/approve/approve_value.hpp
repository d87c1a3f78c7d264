// Values of a server definition that is to be approved: everything that runs is shown unchanged,
// values of env and credentials are masked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/project.hpp"

namespace bulkhead::program {

// A masked value of env. References (${env:NAME}) are shown. Of other text and of defaults, "***"
// is shown, after the first three characters of the first piece with more than 8 characters. An
// empty value is "\"\"". Hidden characters are written as \u escapes.
std::string masked_value(std::string_view value);

// The variable determines which programs or libraries are used (PATH, LD_*, NODE_OPTIONS ...), so
// its masked value must be reviewed in the file.
bool decides_what_runs(std::string_view name);

// The masked text of a header, or nullopt if it is shown unchanged. Values are masked if they or
// the header's name look like a credential.
std::optional<std::string> masked_header(std::string_view name, std::string_view value);

// An argument, address or other text with its passwords masked: in URLs (user:password@,
// ?token=...), connection strings (Password=...;), options (--token=..., -H "Authorization: Bearer
// ...") and JSON. Text that may be run, loaded or opened is never masked: shell code, references,
// paths, addresses.
std::string without_passwords(std::string_view text);
// The same for a command line, in which an option may have its value in the next argument.
std::vector<std::string> args_without_passwords(const std::vector<std::string> &args);

// The absolute paths in args and env that the sandbox will open, at most 100. References are
// resolved if that is possible now, unless their names look like credentials. The file system is
// not accessed; `.` and `..` are resolved by name. A part that looks like a token, in a value with
// the name of a credential, is cut to its first three characters.
std::vector<std::string> named_paths(const ProjectEntry &entry);

}  // namespace bulkhead::program
