// Recognizes the files of programs by their paths. Thread-safe.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

// Returns true for a program file or a script, which a server may read but not change.
bool is_code(const std::string &path);

// Returns the folder that a program file needs: its package, including imported modules. It
// contains none of the home folders.
std::string code_root(const std::string &file, const std::vector<std::string> &homes);

}  // namespace bulkhead
