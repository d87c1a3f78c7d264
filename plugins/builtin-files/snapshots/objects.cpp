#include "builtin-files/snapshots/objects.hpp"

#include <bulkhead/cpp/text.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sodium.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

namespace builtin_files {
namespace {

constexpr std::size_t object_chunk_bytes = 1u << 20;
// If more than this many new objects must be synced, the whole file system is synced instead.
constexpr std::size_t max_single_syncs = 64;

// Returns the path of an object: "ab/cdef...". The 256 subfolders keep each folder small.
std::string path_of(const Hash &hash) {
  std::string path = hex(hash);
  path.insert(2, "/");
  return path;
}

bool hash_from(const std::string &text, Hash *out) {
  std::size_t n = 0;
  return text.size() == 2 * out->size() &&
         ::sodium_hex2bin(out->data(), out->size(), text.data(), text.size(), nullptr, &n,
                          nullptr) == 0 &&
         n == out->size();
}

std::string store_problem(int error) {
  if (error == ENOSPC || error == EDQUOT) return "the disk that stores the snapshots is full";
  return "cannot write the snapshots: " + bh::error_name(error);
}

// Reads one chunk. Returns fewer than `size` bytes only at the end of the file. Returns -1 and sets
// errno on failure.
ssize_t read_chunk(int file, char *chunk, std::size_t size) {
  std::size_t got = 0;
  while (got < size) {
    const ssize_t n = ::read(file, chunk + got, size - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(got);
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// Writes `bytes`. If all bytes are zero, leaves a hole instead, so sparse files stay sparse.
bool write_or_skip(int fd, std::string_view bytes) {
  const bool zeros = bytes.find_first_not_of('\0') == bytes.npos;
  if (!zeros) return write_all(fd, bytes);
  return ::lseek(fd, static_cast<off_t>(bytes.size()), SEEK_CUR) >= 0;
}

// Calls `each` with successive chunks of the file. Returns the error, or an empty string on
// success.
std::string for_each_chunk(int file, const std::function<bool()> &stop,
                           const std::function<std::string(std::string_view)> &each) {
  struct stat s{};
  const bool known = ::fstat(file, &s) == 0 && s.st_size >= 0;
  const std::size_t size = known ? static_cast<std::size_t>(s.st_size) + 1 : object_chunk_bytes;
  std::string chunk(std::min(size, object_chunk_bytes), '\0');
  for (;;) {
    if (stop()) return std::string(stopped);
    const ssize_t n = read_chunk(file, chunk.data(), chunk.size());
    if (n < 0) return "cannot read a file: " + bh::error_name(errno);
    if (n == 0) return {};
    std::string problem = each(std::string_view(chunk).substr(0, static_cast<std::size_t>(n)));
    if (!problem.empty()) return problem;
  }
}

}  // namespace

bool Objects::open(int folder, std::string *problem) {
  if (::mkdirat(folder, "objects", 0700) != 0 && errno != EEXIST) {
    *problem = store_problem(errno);
    return false;
  }
  folder_ = Workspace::open_below(folder, "objects", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder_.valid()) *problem = store_problem(errno);
  return folder_.valid();
}

Fd Objects::make_temporary(std::string *name) {
  *name = "new-" + std::to_string(next_temporary_++);
  ::unlinkat(folder_.get(), name->c_str(), 0);
  return Workspace::open_below(folder_.get(), name->c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
}

// Renames a temporary file to its object name. If the object already exists, removes the temporary
// file instead.
bool Objects::place(int temporary, const std::string &temporary_name, const Hash &hash, Put *put) {
  const std::string path = path_of(hash);
  put->hash = hash;
  struct stat s{};
  if (::fstatat(folder_.get(), path.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0) {
    ::unlinkat(folder_.get(), temporary_name.c_str(), 0);
    return true;
  }
  const std::string shard = path.substr(0, 2);
  ::mkdirat(folder_.get(), shard.c_str(), 0700);
  // Another program may have replaced the folder by a link.
  const Fd folder =
      Workspace::open_below(folder_.get(), shard.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!folder.valid() || ::fstat(temporary, &s) != 0 ||
      ::renameat(folder_.get(), temporary_name.c_str(), folder.get(), path.c_str() + 3) != 0) {
    return false;
  }
  put->added = static_cast<std::uint64_t>(s.st_size);
  new_.push_back(path);
  return true;
}

Objects::Put Objects::put(int file, std::uint64_t max_bytes, const std::function<bool()> &stop) {
  struct stat s{};
  if (::fstat(file, &s) != 0 || static_cast<std::uint64_t>(s.st_size) > object_chunk_bytes) {
    return put_large(file, max_bytes, stop);
  }
  std::string bytes(static_cast<std::size_t>(s.st_size) + 1, '\0');
  const ssize_t n = read_chunk(file, bytes.data(), bytes.size());
  if (n < 0) return {.problem = "cannot read a file: " + bh::error_name(errno)};
  if (static_cast<std::size_t>(n) == bytes.size()) {  // the file has grown
    ::lseek(file, 0, SEEK_SET);
    return put_large(file, max_bytes, stop);
  }
  bytes.resize(static_cast<std::size_t>(n));
  if (bytes.size() > max_bytes)
    return {.problem = "a file became too large while it was being read"};
  return put_small(bytes);
}

Objects::Put Objects::put_small(const std::string &bytes) {
  Put out{.hash = hash_of(bytes), .problem = {}};
  if (::faccessat(folder_.get(), path_of(out.hash).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    return out;
  }
  std::string name;
  const Fd fd = make_temporary(&name);
  if (!fd.valid() || !write_all(fd.get(), bytes) || !place(fd.get(), name, out.hash, &out)) {
    out.problem = store_problem(errno);
    ::unlinkat(folder_.get(), name.c_str(), 0);
  }
  return out;
}

bool Objects::clone(int from, int to) {
  if (!may_clone_) return false;
  if (::ioctl(to, FICLONE, from) == 0) return true;
  may_clone_ = false;
  return false;
}

Objects::Put Objects::put_large(int file, std::uint64_t max_bytes,
                                const std::function<bool()> &stop) {
  Put out;
  std::string name;
  const Fd fd = make_temporary(&name);
  if (!fd.valid()) return {.problem = store_problem(errno)};
  const bool cloned = clone(file, fd.get());
  Hasher hasher;
  std::uint64_t size = 0;
  // If the live file was cloned, hashes the clone, because the live file may change.
  out.problem = for_each_chunk(cloned ? fd.get() : file, stop, [&](std::string_view chunk) {
    size += chunk.size();
    if (size > max_bytes) return std::string("a file became too large while it was being read");
    hasher.add(chunk);
    return cloned || write_or_skip(fd.get(), chunk) ? std::string() : store_problem(errno);
  });
  const bool whole = out.problem.empty() &&
                     (cloned || ::ftruncate(fd.get(), static_cast<off_t>(size)) == 0) &&
                     place(fd.get(), name, hasher.end(), &out);
  if (whole) return out;
  if (out.problem.empty()) out.problem = store_problem(errno);
  ::unlinkat(folder_.get(), name.c_str(), 0);
  return out;
}

bool Objects::hash_file(int file, const std::function<bool()> &stop, Hash *out) {
  Hasher hasher;
  const std::string problem = for_each_chunk(file, stop, [&](std::string_view chunk) {
    hasher.add(chunk);
    return std::string();
  });
  *out = hasher.end();
  return problem.empty();
}

bool Objects::copy_to(const Hash &hash, int to, const std::function<bool()> &stop,
                      std::string *problem) {
  const Fd from =
      Workspace::open_below(folder_.get(), path_of(hash).c_str(), O_RDONLY | O_NOFOLLOW);
  if (!from.valid()) {
    *problem = "the content is missing from the snapshot store";
    return false;
  }
  const bool cloned = clone(from.get(), to);
  Hasher hasher;
  std::uint64_t size = 0;
  *problem = for_each_chunk(cloned ? to : from.get(), stop, [&](std::string_view chunk) {
    hasher.add(chunk);
    size += chunk.size();
    return cloned || write_or_skip(to, chunk) ? std::string()
                                              : "writing failed: " + bh::error_name(errno);
  });
  if (problem->empty() && !cloned && ::ftruncate(to, static_cast<off_t>(size)) != 0) {
    *problem = "writing failed: " + bh::error_name(errno);
  }
  if (problem->empty() && hasher.end() != hash) {
    *problem = "the content in the snapshot store is damaged";
  }
  return problem->empty();
}

std::uint64_t Objects::size_of(const Hash &hash) const {
  struct stat s{};
  if (::fstatat(folder_.get(), path_of(hash).c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return static_cast<std::uint64_t>(s.st_size);
}

std::uint64_t Objects::remove(const Hash &hash) {
  const std::uint64_t size = size_of(hash);
  return ::unlinkat(folder_.get(), path_of(hash).c_str(), 0) == 0 ? size : 0;
}

std::uint64_t Objects::sweep(const std::function<bool(const Hash &)> &keep) {
  std::uint64_t bytes = 0;
  const auto each = [](int folder, const char *name, const auto &on_name) {
    Fd fd = Workspace::open_below(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!fd.valid()) return;
    const OpenDirectory dir(::fdopendir(fd.get()));
    if (!dir) return;
    const int here = fd.release();
    while (const dirent *entry = ::readdir(dir.get())) {
      if (entry->d_name[0] != '.') on_name(here, std::string(entry->d_name));
    }
  };
  each(folder_.get(), ".", [&](int top, const std::string &name) {
    if (name.size() != 2) {
      ::unlinkat(top, name.c_str(), 0);
      return;
    }
    each(top, name.c_str(), [&](int here, const std::string &rest) {
      Hash hash{};
      const bool known = hash_from(name + rest, &hash) && keep(hash);
      struct stat s{};
      if (!known) {
        ::unlinkat(here, rest.c_str(), 0);
      } else if (::fstatat(here, rest.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0) {
        bytes += static_cast<std::uint64_t>(s.st_size);
      }
    });
  });
  return bytes;
}

bool Objects::sync(std::string *problem) {
  const std::vector<std::string> fresh = std::exchange(new_, {});
  bool good = true;
  if (fresh.size() > max_single_syncs) {
    good = ::syncfs(folder_.get()) == 0;
  } else {
    for (const std::string &path : fresh) {
      const Fd fd = Workspace::open_below(folder_.get(), path.c_str(), O_RDONLY | O_NOFOLLOW);
      good = good && fd.valid() && ::fsync(fd.get()) == 0;
    }
  }
  if (!good) *problem = store_problem(errno);
  return good;
}

}  // namespace builtin_files
