// Writes strings to standard output and standard error. Used instead of iostreams to keep the
// program small.
#pragma once

#include <unistd.h>

#include <string_view>

#include "base/write_all.hpp"

namespace bulkhead::relay {

inline bool write_output(std::string_view text) noexcept {
  return write_all(STDOUT_FILENO, text);
}

inline void write_error(std::string_view text) noexcept {
  write_all(STDERR_FILENO, text);
}

}  // namespace bulkhead::relay
