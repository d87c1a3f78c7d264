// A plugin's file, opened once: the descriptor that is checked is the one that is mapped.
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

// A folder that nobody but root and us can change (symbolic links on the way to it are followed).
Result<OwnedFd> open_trusted_folder(const std::string &folder);

// A regular file in it, not a symbolic link, that nobody but root and us can change. `status` gets
// its fstat. BH_E_NOT_FOUND when there is none.
Result<OwnedFd> open_trusted_file(int folder_fd, const std::string &folder, const std::string &name,
                                  struct stat *status);

// Is this a whole shared library for this machine? A truncated one would end the process with
// SIGBUS when its pages are first touched, long after dlopen().
Result<void> check_elf(int fd, std::uint64_t size);

// Names that the library exports, read without running anything of it. After check_elf().
Result<std::vector<std::string>> read_exports(int fd);

// What a section holds, empty if there is none of that name. After check_elf(). BH_E_LIMIT: more
// than `most` bytes.
Result<std::string> read_section(int fd, std::string_view name, std::size_t most);

// Lower-case hex SHA-256 of the whole file.
Result<std::string> sha256_of(int fd);

}  // namespace bulkhead
