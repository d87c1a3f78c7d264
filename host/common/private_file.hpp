// Reads, writes and locks files that only this user can access.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

// Reads a regular file that only this user can access. Returns BH_E_NOT_FOUND if the file does not
// exist, BH_E_DENIED if it is not a regular file, belongs to another user or is accessible to
// others, and BH_E_LIMIT if it is larger than `most` bytes.
Result<std::string> read_private(const std::string &path, std::size_t most);

enum class Existing : std::uint8_t { replace, keep };

// Writes folder/name atomically with mode 0600: writes a temporary file in the same directory,
// calls fsync() and renames the temporary file. Returns BH_E_DENIED if the file exists and
// `existing` is keep.
Result<void> write_private(const std::string &folder, const std::string &name,
                           std::string_view text, Existing existing = Existing::replace);

// Locks the file until the returned descriptor is closed. Returns BH_E_UNAVAILABLE if another
// process holds the lock for longer than wait_ms.
Result<OwnedFd> lock_file(const std::string &path, std::uint64_t wait_ms);

}  // namespace bulkhead::program
