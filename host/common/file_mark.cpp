#include "common/file_mark.hpp"

#include <cstdint>

namespace bulkhead::program {

std::string file_mark(const struct stat &status) {
  std::string out;
  for (const auto part :
       {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino),
        static_cast<std::uint64_t>(status.st_size),
        static_cast<std::uint64_t>(status.st_mtim.tv_sec),
        static_cast<std::uint64_t>(status.st_mtim.tv_nsec)}) {
    out += (out.empty() ? "" : ":") + std::to_string(part);
  }
  return out;
}

}  // namespace bulkhead::program
