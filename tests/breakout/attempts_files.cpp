#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "attempts.hpp"

namespace breakout {
namespace {

int read_of(const std::string &path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char byte;
  const ssize_t n = ::read(fd, &byte, 1);
  const int error = n == 1 ? 0 : n < 0 ? errno : ENODATA;
  ::close(fd);
  return error;
}

int write_to(const std::string &path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
  if (fd < 0) return errno;
  ::close(fd);
  ::unlink(path.c_str());
  return 0;
}

int read_state(const Target &t) {
  return read_of(t.state_file);
}
int change_state(const Target &t) {
  const int fd = ::open(t.state_file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}
int cut_state(const Target &t) {
  return ::truncate(t.state_file.c_str(), 4) == 0 ? 0 : errno;
}
int read_shadow(const Target &) {
  return read_of("/etc/shadow");
}
int read_passwd(const Target &) {
  return read_of("/etc/passwd");
}
int read_home(const Target &t) {
  return read_of(t.home_file);
}
int open_up_home(const Target &t) {
  return ::chmod(t.home_file.c_str(), 0644) == 0 ? 0 : errno;
}
int plant_plugin(const Target &t) {
  return write_to(t.plugin_folder + "/planted.so");
}
int swap_home(const Target &t) {
  const std::string other = t.home_file + ".moved";
  if (::rename(t.home_file.c_str(), other.c_str()) != 0) return errno;
  ::rename(other.c_str(), t.home_file.c_str());
  return 0;
}
int link_out(const Target &t) {
  const std::string link = t.scratch + "/link-to-home";
  if (::link(t.home_file.c_str(), link.c_str()) != 0) return errno;
  ::unlink(link.c_str());
  return 0;
}
// The kernel must check the target of the link.
int read_through_link(const Target &t) {
  const std::string link = t.scratch + "/symlink-to-home";
  ::unlink(link.c_str());
  if (::symlink(t.home_file.c_str(), link.c_str()) != 0) return errno;
  const int error = read_of(link);
  ::unlink(link.c_str());
  return error;
}

}  // namespace

void add_file_attempts(std::vector<Attempt> *all) {
  all->insert(all->end(), {{"read the session database", read_state},
                           {"write the session database", change_state},
                           {"truncate the session database", cut_state},
                           {"read /etc/shadow", read_shadow},
                           {"read /etc/passwd", read_passwd},
                           {"read the home folder", read_home},
                           {"open up a file at home (chmod)", open_up_home},
                           {"rename a file at home", swap_home},
                           {"hard link to a file at home", link_out},
                           {"symbolic link to a file at home", read_through_link},
                           {"plant a plugin", plant_plugin}});
}

}  // namespace breakout
