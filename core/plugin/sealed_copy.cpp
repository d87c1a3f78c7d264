#include "plugin/sealed_copy.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/write_all.hpp"
#include "bulkhead/cpp/text.hpp"

// Older C libraries do not define this flag, which Linux 6.3 introduced.
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace bulkhead {
namespace {

std::unexpected<Error> copy_error(const std::string &what) {
  return fail(BH_E_IO, what + ": " + bh::error_name(errno));
}

OwnedFd memory_file() {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  OwnedFd out(::memfd_create("plugin", flags | MFD_EXEC));
  // A kernel that does not know the flag creates executable files without it.
  if (!out && errno == EINVAL) out = OwnedFd(::memfd_create("plugin", flags));
  return out;
}

}  // namespace

Result<OwnedFd> sealed_copy(int fd) {
  OwnedFd out = memory_file();
  if (!out) {
    if (errno == EACCES)
      return fail(BH_E_IO,
                  "cannot be copied for verification: the sysctl vm.memfd_noexec forbids "
                  "executable memory files");
    return copy_error("cannot be copied for verification");
  }
  std::array<char, 64 * 1024> piece;
  for (std::uint64_t size = 0;;) {
    const ssize_t n = ::pread(fd, piece.data(), piece.size(), static_cast<off_t>(size));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return copy_error("cannot be read");
    if (n == 0) break;
    size += static_cast<std::uint64_t>(n);
    if (size > max_sealed_bytes) return fail(BH_E_LIMIT, "is larger than 256 MiB");
    if (!write_all(out.get(), {piece.data(), static_cast<std::size_t>(n)}))
      return copy_error("cannot be copied for verification");
  }
  // The users of all compartments must be able to map it. A plugin's code is not secret.
  if (::fchmod(out.get(), 0555) != 0 ||
      ::fcntl(out.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) !=
          0) {
    return copy_error("cannot be sealed for verification");
  }
  return out;
}

}  // namespace bulkhead
