// Sanitizes untrusted text, such as a plugin's error message or a file name, for log lines and
// error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "bulkhead/abi/core.h"
#include "bulkhead/cpp/text.hpp"

namespace bulkhead {

// Returns the sanitized text of a plugin's error, or `fallback` if it is empty.
std::string error_text(const bh_error &error, std::string_view fallback);

// Returns true if the name consists of 1 to 64 characters from [a-z0-9-]. Such a name can be used
// in a file name.
bool is_plain_name(std::string_view name) noexcept;

}  // namespace bulkhead
