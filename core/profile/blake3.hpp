// BLAKE3 (hash mode, 32 bytes), because Debian has no C or C++ library for it. Portable code that
// hashes one block at a time, for texts of a few MiB.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

// Returns 64 lower-case hexadecimal digits. Thread-safe.
std::string blake3_hex(std::string_view bytes);

}  // namespace bulkhead
