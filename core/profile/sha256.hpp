#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

// 64 hexadecimal digits in lower case.
std::string sha256_hex(std::string_view text);

}  // namespace bulkhead
