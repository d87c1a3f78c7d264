// A plugin's file, opened once: the checked descriptor is the mapped one.
//
// Thread: any; every function is self-contained.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead {

// Opens a folder that only root and the own user can change (symbolic links in its path are
// followed).
Result<OwnedFd> open_trusted_folder(const std::string &folder);

// Opens a regular file in it, not a symbolic link, that only root and the own user can change.
// `status` gets its fstat. BH_E_NOT_FOUND if there is none.
Result<OwnedFd> open_trusted_file(int folder_fd, const std::string &folder, const std::string &name,
                                  struct stat *status);

// Checks that it is a complete shared library for this machine. A truncated file would end the
// process with SIGBUS when its pages are first accessed, long after dlopen().
Result<void> check_elf(int fd, std::uint64_t size);

// The names that the library exports, read without running its code. Call after check_elf().
Result<std::vector<std::string>> read_exports(int fd);

// The content of a section, empty if there is none of that name. Call after check_elf().
// BH_E_LIMIT: more than `most` bytes.
Result<std::string> read_section(int fd, std::string_view name, std::size_t most);

// Lower-case hex SHA-256 of the whole file.
Result<std::string> sha256_of(int fd);

}  // namespace bulkhead
