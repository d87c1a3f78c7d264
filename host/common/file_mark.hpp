// Recognizes changed files.
#pragma once

#include <sys/stat.h>

#include <string>

namespace bulkhead::program {

// Returns a string that changes if the file is replaced or written to (PluginFile::mark).
std::string file_mark(const struct stat &status);

}  // namespace bulkhead::program
