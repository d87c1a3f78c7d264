#include "common/private_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/paths.hpp"

namespace bulkhead::program {

Result<std::string> read_private(const std::string &path, std::size_t most) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    return fail(errno == ENOENT || errno == ENOTDIR ? BH_E_NOT_FOUND : BH_E_IO,
                describe_errno(path, errno));
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return fail(BH_E_IO, describe_errno(path, errno));
  if (!S_ISREG(info.st_mode)) return fail(BH_E_DENIED, path + " is not a regular file");
  if (info.st_uid != ::geteuid()) return fail(BH_E_DENIED, path + " belongs to another user");
  if ((info.st_mode & 077) != 0) {
    return fail(BH_E_DENIED,
                path + " is accessible to other users; check its content, then run chmod 600");
  }
  std::string text;
  std::array<char, 16'384> block;
  while (text.size() <= most) {
    const ssize_t n = ::read(fd.get(), block.data(), block.size());
    if (n == 0) return text;
    if (n > 0) {
      text.append(block.data(), static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      return fail(BH_E_IO, describe_errno(path, errno));
    }
  }
  return fail(BH_E_LIMIT, path + " is larger than " + std::to_string(most) + " bytes");
}

Result<void> write_private(const std::string &folder, const std::string &name,
                           std::string_view text, Existing existing) {
  const std::string path = folder + "/" + name;
  std::string beside = path + ".XXXXXX";  // mkostemp() creates a unique file with mode 0600
  OwnedFd fd(::mkostemp(beside.data(), O_CLOEXEC));
  if (!fd) return fail(BH_E_IO, describe_errno(path, errno));
  bool good = true;
  while (good && !text.empty()) {
    const ssize_t n = ::write(fd.get(), text.data(), text.size());
    if (n > 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else {
      good = n < 0 && errno == EINTR;
    }
  }
  good = good && ::fsync(fd.get()) == 0;
  const bool replace = existing == Existing::replace;
  good = good && (replace ? ::rename(beside.c_str(), path.c_str())
                          : ::link(beside.c_str(), path.c_str())) == 0;
  const int error = errno;
  if (!good || !replace) ::unlink(beside.c_str());
  if (!good) return fail(error == EEXIST ? BH_E_DENIED : BH_E_IO, describe_errno(path, error));
  const OwnedFd dir(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir) ::fsync(dir.get());
  return {};
}

Result<OwnedFd> lock_file(const std::string &path, std::uint64_t wait_ms) {
  constexpr std::uint64_t step_ms = 20;
  OwnedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail(BH_E_IO, describe_errno(path, errno));
  for (std::uint64_t waited = 0;; waited += step_ms) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK && errno != EINTR) return fail(BH_E_IO, describe_errno(path, errno));
    if (waited >= wait_ms) return fail(BH_E_UNAVAILABLE, path + ": another process holds the lock");
    ::poll(nullptr, 0, static_cast<int>(step_ms));
  }
}

}  // namespace bulkhead::program
