// Files that only this user reads and writes: whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// A regular file that only we can read and write, whole. BH_E_NOT_FOUND: there is none;
// BH_E_DENIED: it is another's or open to others; BH_E_LIMIT: it has more than `most` bytes.
Result<std::string> read_private(const std::string &path, std::size_t most);

// Replaces folder/name: written beside it, synchronised, renamed. Mode 0600.
Result<void> write_private(const std::string &folder, const std::string &name,
                           std::string_view text);

// The lock file, held until the result is closed. BH_E_UNAVAILABLE: another process holds it, and
// still does after wait_ms. Blocks so long.
Result<OwnedFd> lock_file(const std::string &path, std::uint64_t wait_ms);

}  // namespace bulkhead::program
