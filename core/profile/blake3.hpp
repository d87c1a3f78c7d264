// BLAKE3 (hash mode, 32 bytes), since Debian has no C or C++ library of it. For texts of a few MiB
// at most: portable code, one block at a time.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

// The digest as 64 small hexadecimal digits. Thread: any.
std::string blake3_hex(std::string_view bytes);

}  // namespace bulkhead
