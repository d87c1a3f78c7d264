// Implements BLAKE3 (hash mode, 32 bytes of output), because Debian has no C or C++ library for it.
// The code is portable and hashes one block at a time, which is fast enough for inputs of a few
// MiB.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

// Returns the hash as 64 lowercase hexadecimal digits. Thread-safe.
std::string blake3_hex(std::string_view bytes);

}  // namespace bulkhead
