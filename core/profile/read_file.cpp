#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bulkhead/cpp/text.hpp"
#include "profile/read_file.hpp"

namespace bulkhead {

namespace profiles {

Result<std::string> read_whole(const std::string &path, std::size_t most, bool regular) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (regular ? O_NONBLOCK : 0));
  if (fd < 0) {
    const int error = errno;
    const bool missing = error == ENOENT || error == ENOTDIR;
    return fail(missing ? BH_E_NOT_FOUND : BH_E_IO,
                path + ": " +
                    (missing ? "no such file [file_not_found]"
                             : "cannot be read: " + bh::error_name(error) + " [unreadable]"));
  }
  std::string text;
  struct stat info;
  int error = ::fstat(fd, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
  if (error == 0 && regular && !S_ISREG(info.st_mode)) {
    ::close(fd);
    return fail(BH_E_IO, path + ": is not a regular file [unreadable]");
  }
  char block[65'536];
  while (error == 0 && text.size() <= most) {
    const ssize_t n = ::read(fd, block, sizeof block);
    if (n == 0) break;
    if (n > 0)
      text.append(block, static_cast<std::size_t>(n));
    else if (errno != EINTR)
      error = errno;
  }
  ::close(fd);
  if (error != 0)
    return fail(BH_E_IO, path + ": cannot be read: " + bh::error_name(error) + " [unreadable]");
  if (text.size() > most)
    return fail(BH_E_LIMIT, path + ": larger than " + std::to_string(most) + " bytes [too_large]");
  return text;
}

}  // namespace profiles

Result<ProfileLayer> read_profile_file(const std::string &path, std::string layer_name) {
  auto text = profiles::read_whole(path, kProfileBytes);
  if (!text) return std::unexpected(std::move(text.error()));
  return ProfileLayer{std::move(layer_name), path, std::move(*text)};
}

Result<ProfileLayer> read_project_file(const std::string &path) {
  auto text = profiles::read_whole(path, kProfileBytes, true);
  if (!text) return std::unexpected(std::move(text.error()));
  ProfileLayer layer{"project", path, std::move(*text)};
  layer.project = true;
  return layer;
}

}  // namespace bulkhead
