// Recognizes program files and finds the folders that they need. Thread-safe.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

// Returns true if the file is executable or a script. A server may read such a file but not change
// it.
bool is_code(const std::string &path);

// Returns the folder that a program file needs at run time: its package, including the modules that
// it imports. The search for the package stops at the home directories.
std::string code_root(const std::string &file, const std::vector<std::string> &homes);

}  // namespace bulkhead
