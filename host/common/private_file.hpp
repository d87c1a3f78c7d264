// Files that only this user can read and write, written atomically.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// Reads a whole regular file that only this user can access. BH_E_NOT_FOUND: it does not exist.
// BH_E_DENIED: it belongs to another user or is open to others. BH_E_LIMIT: it has more than `most`
// bytes.
Result<std::string> read_private(const std::string &path, std::size_t most);

enum class Existing : std::uint8_t { replace, keep };

// Writes folder/name atomically: to a unique temporary file in the folder, synchronized, then
// renamed. Mode 0600. BH_E_DENIED: the file exists and `existing` is keep.
Result<void> write_private(const std::string &folder, const std::string &name,
                           std::string_view text, Existing existing = Existing::replace);

// Locks the file until the result is closed. Waits at most wait_ms. BH_E_UNAVAILABLE: another
// process still holds the lock.
Result<OwnedFd> lock_file(const std::string &path, std::uint64_t wait_ms);

}  // namespace bulkhead::program
