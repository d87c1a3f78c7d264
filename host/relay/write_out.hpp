// Writes strings to standard output and standard error. Used instead of iostreams to keep the
// program small.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace bulkhead::relay {

inline bool write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

inline bool write_output(std::string_view text) noexcept {
  return write_all(STDOUT_FILENO, text);
}

inline void write_error(std::string_view text) noexcept {
  write_all(STDERR_FILENO, text);
}

}  // namespace bulkhead::relay
