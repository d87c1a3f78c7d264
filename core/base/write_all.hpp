// Writes a text to a descriptor completely.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

namespace bulkhead {

// Writes all bytes to a file, or to a pipe or socket that blocks. Returns false, with errno, after
// an error; a part may then have been written. Allocates no memory.
inline bool write_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace bulkhead
