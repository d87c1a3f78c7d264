// Files that only this user can read and write, written atomically.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// Reads the whole of a regular file that only this user can access. Returns BH_E_NOT_FOUND if it
// does not exist, BH_E_DENIED if it belongs to another user or is accessible to others, and
// BH_E_LIMIT if it has more than `most` bytes.
Result<std::string> read_private(const std::string &path, std::size_t most);

enum class Existing : std::uint8_t { replace, keep };

// Writes folder/name atomically with mode 0600: writes a unique temporary file in the folder,
// synchronizes it and renames it. Returns BH_E_DENIED if the file exists and `existing` is keep.
Result<void> write_private(const std::string &folder, const std::string &name,
                           std::string_view text, Existing existing = Existing::replace);

// Locks the file until the result is closed. Waits at most wait_ms. Returns BH_E_UNAVAILABLE if
// another process still holds the lock.
Result<OwnedFd> lock_file(const std::string &path, std::uint64_t wait_ms);

}  // namespace bulkhead::program
