// The files that programs consist of, as far as a path shows it. Thread: any.
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

// True for a program file or a script: a server may read it but not change it.
bool is_code(const std::string &path);

// The folder that a program file needs: its package, including imported modules. It holds none of
// the home folders.
std::string code_root(const std::string &file, const std::vector<std::string> &homes);

}  // namespace bulkhead
