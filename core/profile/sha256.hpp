#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

// Returns the hash as 64 lowercase hexadecimal digits.
std::string sha256_hex(std::string_view text);

}  // namespace bulkhead
