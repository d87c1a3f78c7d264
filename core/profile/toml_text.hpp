// Writing TOML. Internal to the rooms of profiles.
#pragma once

#include <string>
#include <string_view>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

// The position after the string that begins at `i`, of one line or several; an unterminated string
// ends with its line, or with the text.
std::size_t skip_toml_string(std::string_view text, std::size_t i);

std::string toml_string(std::string_view text);  // in one line
std::string toml_key(std::string_view name);     // bare where possible
// The value in one line; tables inline. Empty: TOML has no such value (null, a table with null).
std::string toml_value(const Node &node);

}  // namespace bulkhead::profiles
