// Text that came from outside (a plugin, a file name), made fit for a log line or an error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "bulkhead/abi/core.h"

namespace bulkhead {

// Control characters become spaces and malformed UTF-8 becomes '?'; cut to max_bytes on a character
// boundary. Any thread.
std::string clean_text(std::string_view text, std::size_t max_bytes);

// The text of a plugin's error, cleaned, or `fallback` when it gave none.
std::string error_text(const bh_error &error, std::string_view fallback);

// strerror without its shared buffer. Any thread.
std::string error_name(int error);

// A name that is safe as a part of a file name: 1..64 of [a-z0-9-].
bool is_plain_name(std::string_view name) noexcept;

}  // namespace bulkhead
