// Displays values of a server definition for approval. Programs and their arguments are shown
// unchanged; values of env and credentials are masked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/project.hpp"

namespace bulkhead::program {

// Returns a masked value of env. References (${env:NAME}) are shown. Other text and defaults become
// "***", and the first piece with more than 8 characters also shows its first three characters. An
// empty value becomes "\"\"". Hidden characters are written as \u escapes.
std::string masked_value(std::string_view value);

// Returns true if the variable determines which programs or libraries are used (PATH, LD_*,
// NODE_OPTIONS ...). Because its value is masked, it must be reviewed in the file.
bool decides_what_runs(std::string_view name);

// Returns the masked value of a header, or nullopt if the header is shown unchanged. Values are
// masked if the value or the header's name looks like a credential.
std::optional<std::string> masked_header(std::string_view name, std::string_view value);

// Masks the passwords in an argument, URL or other text: in URLs (user:password@, ?token=...),
// connection strings (Password=...;), options (--token=..., -H "Authorization: Bearer ...") and
// JSON. Text that may be run, loaded or opened is never masked: shell code, references, paths,
// addresses.
std::string without_passwords(std::string_view text);
// Like without_passwords(), for a command line: the value of an option may be the next argument.
std::vector<std::string> args_without_passwords(const std::vector<std::string> &args);

// Returns the absolute paths in args and env that the sandbox will open, at most 100. References
// are resolved if possible, unless their names look like credentials. The file system is not
// accessed; `.` and `..` are resolved textually. If a value has the name of a credential, path
// segments that look like tokens are cut to their first three characters.
std::vector<std::string> named_paths(const ProjectEntry &entry);

}  // namespace bulkhead::program
