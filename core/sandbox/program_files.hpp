// Recognizes program files by their paths. Thread-safe.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

// Returns true for a program file or a script, which a server may read but not change.
bool is_code(const std::string &path);

// Returns the folder that a program file needs: its package, including the modules that it imports.
// The folder does not contain any of the home folders.
std::string code_root(const std::string &file, const std::vector<std::string> &homes);

}  // namespace bulkhead
