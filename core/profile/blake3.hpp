// BLAKE3 (hash mode, 32 bytes): Debian has no C or C++ library for it. Portable code, one block at
// a time, for texts of a few MiB.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

// 64 hexadecimal digits in lower case. Thread: any.
std::string blake3_hex(std::string_view bytes);

}  // namespace bulkhead
