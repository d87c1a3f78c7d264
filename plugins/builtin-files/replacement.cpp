#include "builtin-files/replacement.hpp"

#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "builtin-files/remove.hpp"

namespace builtin_files {
namespace {

constexpr int max_attempts = 16;

bool same_file(const struct stat &a, const struct stat &b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

std::string write_problem(const std::string &name, int error) {
  if (error == ENOSPC || error == EDQUOT) {
    return "the disk is full; " + shown(name) + " is unchanged";
  }
  if (error == EACCES || error == EPERM || error == EROFS) {
    return "writing " + shown(name) + " is not permitted here";
  }
  return "writing " + shown(name) + " failed: " + bh::error_name(error);
}

}  // namespace

Replacement::~Replacement() {
  if (fd_.valid() && !temporary_.empty()) {
    ::unlinkat(place_->folder.get(), temporary_.c_str(), 0);
  }
}

// Creates and locks the temporary file. An existing file without a lock is removed and never
// reused, because another program may have created it or a killed writer may have left it.
bool Replacement::try_begin(bool *busy) {
  const int folder = place_->folder.get();
  const char *name = temporary_.c_str();
  Fd fresh = Workspace::open_below(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!fresh.valid() && errno == EEXIST) {
    const Fd left = Workspace::open_below(folder, name, O_RDONLY | O_NOFOLLOW);
    *busy = left.valid() && ::flock(left.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!*busy && ::unlinkat(folder, name, 0) != 0 && errno != ENOENT) return false;
    errno = EAGAIN;
    return false;
  }
  if (!fresh.valid()) return false;
  // Another writer may have removed the file before this thread locked it.
  struct stat mine{};
  struct stat there{};
  const bool held =
      ::flock(fresh.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(fresh.get(), &mine) == 0 &&
      ::fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && same_file(mine, there);
  if (held) fd_ = std::move(fresh);
  errno = EAGAIN;
  return held;
}

bool Replacement::begin(const Place &place, std::string *problem) {
  place_ = &place;
  temporary_ = temporary_name(place.name);
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    bool busy = false;
    if (try_begin(&busy)) return true;
    if (busy) {
      *problem = "another call is writing " + shown(place.name) + "; try again";
      return false;
    }
    if (errno != EAGAIN) break;
  }
  *problem = write_problem(place.name, errno);
  return false;
}

bool Replacement::write(std::string_view bytes, std::string *problem) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      *problem = write_problem(place_->name, errno);
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool Replacement::commit(mode_t mode, Over over, std::string *problem) {
  const bool written = ::fchmod(fd_.get(), mode & 0777) == 0 && (!sync_ || ::fsync(fd_.get()) == 0);
  if (!written || !put_in_place(place_->folder.get(), temporary_, place_->name, over)) {
    *problem = errno == EEXIST   ? shown(place_->name) + " already exists"
               : errno == EISDIR ? shown(place_->name) + " is a folder"
                                 : write_problem(place_->name, errno);
    return false;
  }
  temporary_.clear();
  if (sync_) ::fsync(place_->folder.get());
  return true;
}

bool put_in_place(int folder, const std::string &from, const std::string &to, Over over) {
  const auto rename = [&](unsigned flags) {
    return ::syscall(SYS_renameat2, folder, from.c_str(), folder, to.c_str(), flags) == 0;
  };
  if (rename(over == Over::nothing ? RENAME_NOREPLACE : 0)) return true;
  if (over == Over::nothing && (errno == EINVAL || errno == ENOSYS)) {
    // The file system does not support RENAME_NOREPLACE, so linkat() is used, which never replaces
    // a file either.
    return ::linkat(folder, from.c_str(), folder, to.c_str(), 0) == 0 &&
           ::unlinkat(folder, from.c_str(), 0) == 0;
  }
  const bool kinds_differ = errno == EISDIR || errno == ENOTDIR || errno == ENOTEMPTY;
  if (over != Over::anything || !kinds_differ || !rename(RENAME_EXCHANGE)) return false;
  // If the old folder cannot be removed completely, the remaining files stay under the temporary
  // name, which tools do not list.
  remove_tree(folder, from, [] { return false; });
  return true;
}

}  // namespace builtin_files
