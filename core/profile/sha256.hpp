#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

// Returns 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view text);

}  // namespace bulkhead
