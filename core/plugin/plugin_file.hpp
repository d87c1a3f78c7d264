// Opens and checks a plugin's file. It is opened only once, so the checked file is the file that is
// mapped.
//
// Thread-safe.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead {

// Opens a folder that can be changed only by root and this user. Symbolic links in its path are
// followed.
Result<OwnedFd> open_trusted_folder(const std::string &folder);

// Opens a regular file that can be changed only by root and this user. Symbolic links are rejected.
// Stores the result of fstat in `status`. Returns BH_E_NOT_FOUND if there is no such file.
Result<OwnedFd> open_trusted_file(int folder_fd, const std::string &folder, const std::string &name,
                                  struct stat *status);

// Checks that the file is a complete shared library for this machine. If a truncated file were
// mapped, accessing the missing pages would terminate the process with SIGBUS long after dlopen().
Result<void> check_elf(int fd, std::uint64_t size);

// Returns the names that the library exports without running its code. Must be called after
// check_elf().
Result<std::vector<std::string>> read_exports(int fd);

// Returns a section's content, or an empty string if there is no section with this name. Must be
// called after check_elf(). Returns BH_E_LIMIT if the section has more than `most` bytes.
Result<std::string> read_section(int fd, std::string_view name, std::size_t most);

// Returns the file's SHA-256 in lower-case hex.
Result<std::string> sha256_of(int fd);

}  // namespace bulkhead
