// What a person who has to say yes sees of a definition: what runs is shown as it is written,
// values of env and what is a credential are not.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/project.hpp"

namespace bulkhead::program {

// A value of env: references (${env:NAME}) as they are; of what is around them, and of defaults,
// the first three characters if there are more than 8 in their piece, once, and "***". An empty
// value is
// "\"\"". Hidden characters are \u escapes.
std::string masked_value(std::string_view value);

// Does the variable name what is run, loaded or looked into (PATH, LD_*, NODE_OPTIONS ...)? Whoever
// sees its value masked has to read it elsewhere.
bool decides_what_runs(std::string_view name);

// What is shown instead of this header, or nothing if all of it is to be shown. Masked are values
// that look like credentials by themselves or by their name.
std::optional<std::string> masked_header(std::string_view name, std::string_view value);

// An argument, an address or other text that is shown as it is written, but for passwords: of URLs
// (user:password@, ?token=...), of connection strings (Password=...;), behind options (--token=...,
// -H "Authorization: Bearer ...") and in JSON. What may be run, loaded or opened is never masked:
// code of a shell, references, paths, addresses.
std::string without_passwords(std::string_view text);
// The same of a command line, where an option may have its value in the next argument.
std::vector<std::string> args_without_passwords(const std::vector<std::string> &args);

// The absolute paths that args and env name, which the sandbox will open: with the references that
// can be resolved now, except those whose names look like credentials. Not looked up in the file
// system; `.` and `..` are resolved by name. Of a part that looks like a token, under the name of a
// credential, the first three characters. At most 100.
std::vector<std::string> named_paths(const ProjectEntry &entry);

}  // namespace bulkhead::program
