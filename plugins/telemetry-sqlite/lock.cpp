#include "telemetry-sqlite/lock.hpp"

#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace telemetry_sqlite {

ChainLock::~ChainLock() {
  if (fd_ >= 0) ::close(fd_);
}

std::string ChainLock::take(const std::string &folder) {
  for (std::uint32_t chain = 1; chain <= max_chains; ++chain) {
    const std::string path = folder + "/chain-" + std::to_string(chain) + ".lock";
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return path + ": " + bh::error_name(errno);
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
      fd_ = fd;
      chain_ = chain;
      return {};
    }
    ::close(fd);
  }
  return std::to_string(max_chains) + " gateways already write to " + folder +
         "; configure a different state_dir";
}

}  // namespace telemetry_sqlite
