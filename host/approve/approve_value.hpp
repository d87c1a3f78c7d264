// Formats the values in a server definition for approval. `env` values are always masked. Programs,
// arguments, URLs and headers are shown unchanged, except that credentials in them are masked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layers/project.hpp"

namespace bulkhead::program {

// Masks an `env` value. References such as ${env:NAME} are shown. All other text, including the
// defaults of references, is replaced by "***". The first three characters of the first piece of
// text that is longer than 8 characters are also shown. An empty value becomes "\"\"". Hidden
// characters are written as \u escapes.
std::string masked_value(std::string_view value);

// Returns true if the variable determines which programs or libraries are used (PATH, LD_*,
// NODE_OPTIONS ...). The user must review such a variable in the file, because its value is masked
// here.
bool decides_what_runs(std::string_view name);

// Returns the masked value of a header if its name or value looks like a credential. Otherwise
// returns nullopt, and only the passwords in the value need to be masked.
std::optional<std::string> masked_header(std::string_view name, std::string_view value);

// Masks the passwords in an argument, URL or other text. They are found in URLs (user:password@,
// ?token=...), connection strings (Password=...;), options (--token=..., -H "Authorization: Bearer
// ...") and JSON. Text that may be run, loaded or opened is never masked: shell code, references,
// paths and addresses.
std::string without_passwords(std::string_view text);
// Masks the passwords in a command line's arguments. Unlike without_passwords(), it also masks an
// option's value that is a separate argument ("--token", "...").
std::vector<std::string> args_without_passwords(const std::vector<std::string> &args);

// Returns up to 100 absolute paths from args and env that the sandbox will make accessible.
// References in env values are resolved, but a value is omitted if it refers to a variable that is
// set and whose name looks like that of a credential. "." and ".." are resolved without accessing
// the file system. If a variable's own name looks like that of a credential, path segments that
// look like tokens are truncated to their first three characters.
std::vector<std::string> named_paths(const ProjectEntry &entry);

}  // namespace bulkhead::program
