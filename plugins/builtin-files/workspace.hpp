// A folder whose inside may be read. Every path is resolved by the kernel from the folder's
// descriptor (openat2 with RESOLVE_BENEATH), so that no path and no symbolic link leads out of it,
// whoever changes the tree meanwhile.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace builtin_files {

class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd &operator=(Fd &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }
  // The descriptor is somebody else's to close from now on.
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// A descriptor, or a sentence that says why there is none.
struct Opened {
  Fd fd;
  std::string problem;
};

class Workspace {
 public:
  // path: a folder, relative to the current one or absolute; not itself bounded by anything.
  // False: *problem says why not.
  static bool open(std::string name, const std::string &path, Workspace *out, std::string *problem);

  const std::string &name() const noexcept { return name_; }

  // path: as a caller of a tool gives it: relative, without "..". Thread: any, also at once.
  Opened open(std::string_view path, int flags) const;

  // As open, from a folder within that is open already; name: one path component.
  static Fd open_below(int folder, const char *name, int flags) noexcept;

 private:
  std::string name_;
  Fd root_;
};

// strerror() without its shared buffer.
std::string error_name(int error);

}  // namespace builtin_files
