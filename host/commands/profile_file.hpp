// A profile that a command writes.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "common/private_file.hpp"

namespace bulkhead::program {

// Writes it whole or not at all, and makes its folder. The mode of a file that is replaced stays; a
// new one is the user's alone. BH_E_DENIED: it exists, and is to be kept.
Result<void> write_profile(const std::string &path, std::string_view text, Existing existing);

// The folder that the path names, "." where it names none.
std::string folder_of(const std::string &path);
// What is behind it.
std::string name_of(const std::string &path);

}  // namespace bulkhead::program
