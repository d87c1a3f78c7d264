#include "commands/profile_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/paths.hpp"

namespace bulkhead::program {

std::string folder_of(const std::string &path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, std::max<std::size_t>(slash, 1));
}

std::string name_of(const std::string &path) {
  return path.substr(path.find_last_of('/') + 1);
}

Result<void> write_profile(const std::string &path, std::string_view text, Existing existing) {
  const std::string folder = folder_of(path);
  if (::access(folder.c_str(), F_OK) != 0) {
    if (auto made = make_private_dir(folder); !made) return made;
  }
  struct ::stat before{};
  const bool there = ::stat(path.c_str(), &before) == 0;
  auto done = write_private(folder, name_of(path), text, existing);
  if (done && there) static_cast<void>(::chmod(path.c_str(), before.st_mode & 0777));
  return done;
}

}  // namespace bulkhead::program
