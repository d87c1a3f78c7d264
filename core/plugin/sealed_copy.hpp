// Copies a file into memory, so that its bytes cannot change between verification and mapping.
// Thread-safe.
#pragma once

#include <cstdint>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead {

// Maximum size of a library that is copied.
inline constexpr std::uint64_t max_sealed_bytes = 256u << 20;

// Returns a sealed memory file with the content of `fd`, from its beginning. No process can change
// it, not even this one. Returns BH_E_LIMIT if the file is larger than max_sealed_bytes, and
// BH_E_IO if the file cannot be read or the kernel does not provide executable memory files.
Result<OwnedFd> sealed_copy(int fd);

}  // namespace bulkhead
