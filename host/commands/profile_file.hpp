// Writes a profile's file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "common/private_file.hpp"

namespace bulkhead::program {

// Replaces the file atomically. Creates the directory if necessary. If the file exists, its mode is
// kept; a new file is private. Returns BH_E_DENIED if the file exists and `existing` is keep.
Result<void> write_profile(const std::string &path, std::string_view text, Existing existing);

// Returns the directory of the path, or "." if the path has no slash.
std::string folder_of(const std::string &path);
// Returns the last segment of the path.
std::string name_of(const std::string &path);

}  // namespace bulkhead::program
