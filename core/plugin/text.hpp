// Sanitizes external text (from a plugin or a file name) for a log line or an error message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "bulkhead/abi/core.h"
#include "bulkhead/cpp/text.hpp"

namespace bulkhead {

// Returns the sanitized text of a plugin's error, or `fallback` if the text is empty.
std::string error_text(const bh_error &error, std::string_view fallback);

// Returns true for a name that is safe as part of a file name: 1 to 64 characters of [a-z0-9-].
bool is_plain_name(std::string_view name) noexcept;

}  // namespace bulkhead
