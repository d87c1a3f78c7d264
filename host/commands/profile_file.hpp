// Writes a profile's file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "common/private_file.hpp"

namespace bulkhead::program {

// Replaces the file atomically and creates its folder. An existing file keeps its mode; a new file
// is private to the user. Returns BH_E_DENIED if the file exists and `existing` is keep.
Result<void> write_profile(const std::string &path, std::string_view text, Existing existing);

// Returns the folder part of the path, or "." if it has none.
std::string folder_of(const std::string &path);
// Returns the last path segment.
std::string name_of(const std::string &path);

}  // namespace bulkhead::program
