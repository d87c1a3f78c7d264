// Reads and writes TOML text. Internal to the profile libraries.
#pragma once

#include <string>
#include <string_view>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Returns the position after the single-line or multi-line string that starts at `i`. An
// unterminated string ends at the end of its line or of the text.
std::size_t skip_toml_string(std::string_view text, std::size_t i);

// Formats a string as a TOML string on one line.
std::string toml_string(std::string_view text);
// Formats a key. It is quoted only if necessary.
std::string toml_key(std::string_view name);
// Formats a value on one line, with inline tables. Returns an empty string for null, for a date,
// for an integer that TOML cannot represent, and for an array or table that contains one of these.
std::string toml_value(const Node &node);

}  // namespace bulkhead::profiles
