// Writing a profile.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "common/private_file.hpp"

namespace bulkhead::program {

// Replaces the file atomically and creates its folder. An existing file keeps its mode; a new file
// is private to the user. BH_E_DENIED: the file exists and `existing` keeps it.
Result<void> write_profile(const std::string &path, std::string_view text, Existing existing);

// The folder part of the path; "." if it has none.
std::string folder_of(const std::string &path);
// The last part of the path.
std::string name_of(const std::string &path);

}  // namespace bulkhead::program
