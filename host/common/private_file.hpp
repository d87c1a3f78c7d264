// Files that only this user reads and writes: whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// A regular file that only we can read and write, whole. BH_E_NOT_FOUND: there is none;
// BH_E_DENIED: it is another's or open to others; BH_E_LIMIT: it has more than `most` bytes.
Result<std::string> read_private(const std::string &path, std::size_t most);

enum class Existing : std::uint8_t { replace, keep };

// Writes folder/name whole or not at all: beside it under a name that nothing else has,
// synchronised, then put in its place. Mode 0600. BH_E_DENIED: there is one already, and it is to
// be kept.
Result<void> write_private(const std::string &folder, const std::string &name,
                           std::string_view text, Existing existing = Existing::replace);

// The lock file, held until the result is closed. BH_E_UNAVAILABLE: another process holds it, and
// still does after wait_ms. Blocks so long.
Result<OwnedFd> lock_file(const std::string &path, std::uint64_t wait_ms);

}  // namespace bulkhead::program
