#include "plugin/secrets.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/write_all.hpp"
#include "bulkhead/cpp/text.hpp"
#include "plugin/plugin_file.hpp"

namespace bulkhead {
namespace {

std::unexpected<Error> secret_failed(const std::string &what) {
  const int error = errno;
  return fail(error == ENOENT ? BH_E_NOT_FOUND : BH_E_IO, what + ": " + bh::error_name(error));
}

Result<OwnedFd> open_private_folder(const std::string &path) {
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) return secret_failed(path);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return secret_failed(path);
  if (status.st_uid != ::geteuid()) return fail(BH_E_DENIED, path + " belongs to another user");
  if ((status.st_mode & 0777) != 0700 && ::fchmod(fd.get(), 0700) != 0) return secret_failed(path);
  return fd;
}

// Counts the secrets in a folder. Temporary files, whose names begin with a dot, are not counted.
std::size_t count_secrets(const std::string &folder) {
  std::size_t count = 0;
  std::error_code ec;
  for (std::filesystem::directory_iterator at(folder, ec), end; !ec && at != end;
       at.increment(ec)) {
    if (!at->path().filename().native().starts_with('.')) ++count;
  }
  return count;
}

}  // namespace

Result<std::string> private_folder(const std::string &state_dir, const std::string &kind,
                                   const std::string &instance) {
  if (state_dir.empty()) return fail(BH_E_UNAVAILABLE, "no state folder is configured");
  std::error_code ec;
  const auto top = std::filesystem::absolute(state_dir, ec);
  if (ec) return fail(BH_E_IO, state_dir + ": " + ec.message());
  // Parent folders are created with the default mode, because they may be the user's
  // ~/.local/state.
  std::filesystem::create_directories(top, ec);
  if (ec) return fail(BH_E_IO, top.string() + ": " + ec.message());
  std::string path = top.string();
  for (const std::string &part : {kind, instance}) {
    path += "/" + part;
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return secret_failed(path);
    if (const auto fd = open_private_folder(path); !fd) return std::unexpected(fd.error());
  }
  return path;
}

Result<std::string> read_secret(const std::string &folder, std::string_view name,
                                std::size_t max_bytes) {
  const auto dir = open_private_folder(folder);
  if (!dir) return std::unexpected(dir.error());
  const std::string file(name);
  const std::string path = folder + "/" + file;
  const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const OwnedFd fd(::openat(dir->get(), file.c_str(), flags));
  if (fd.get() < 0) return secret_failed(path);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return secret_failed(path);
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    return fail(BH_E_DENIED, path + " must be readable only by its owner; run: chmod 600 " + path);
  }
  if (static_cast<std::uint64_t>(status.st_size) > max_bytes) {
    return fail(BH_E_LIMIT, path + " is too large");
  }
  std::string value(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t got = 0;
  while (got < value.size()) {
    const ssize_t n = ::read(fd.get(), value.data() + got, value.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return secret_failed(path);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  value.resize(got);
  return value;
}

Result<void> write_secret(const std::string &folder, std::string_view name,
                          std::string_view value) {
  const auto dir = open_private_folder(folder);
  if (!dir) return std::unexpected(dir.error());
  const std::string file(name);
  const std::string path = folder + "/" + file;
  if (value.empty()) {
    if (::unlinkat(dir->get(), file.c_str(), 0) != 0 && errno != ENOENT) return secret_failed(path);
    return {};
  }
  struct stat status{};
  if (::fstatat(dir->get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 &&
      count_secrets(folder) >= max_secrets) {
    return fail(BH_E_LIMIT,
                folder + " already has " + std::to_string(max_secrets) + " secrets, the maximum");
  }
  // The name of a temporary file begins with a dot, unlike the name of a secret. It contains the
  // process ID and a counter, because another process may write to the folder at the same time.
  static std::atomic<unsigned> serial{0};
  const std::string fresh =
      "." + file + "." + std::to_string(::getpid()) + "." + std::to_string(serial.fetch_add(1));
  ::unlinkat(dir->get(), fresh.c_str(), 0);  // left by a killed process with the same ID
  const OwnedFd fd(::openat(dir->get(), fresh.c_str(),
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() < 0) return secret_failed(path);
  if (!write_all(fd.get(), value) || ::fsync(fd.get()) != 0 ||
      ::renameat(dir->get(), fresh.c_str(), dir->get(), file.c_str()) != 0) {
    const auto error = secret_failed(path);
    ::unlinkat(dir->get(), fresh.c_str(), 0);
    return error;
  }
  if (::fsync(dir->get()) != 0) return secret_failed(path);
  return {};
}

}  // namespace bulkhead
