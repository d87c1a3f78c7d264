// A folder whose inside may be read, and changed if the profile says so. Every path is resolved by
// the kernel from the folder's descriptor (openat2 with RESOLVE_BENEATH), so that no path and no
// symbolic link leads out of it, whoever changes the tree meanwhile.
//
// What changes something takes a Place: an open folder and one name in it. A single name with
// "nofollow" cannot lead anywhere, so the change happens in that very folder.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
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
  int error = 0;  // what the kernel said; 0: the path is none that it was asked for
};

// Where the last component of a path lies, whether it is there or not.
struct Place {
  Fd folder;         // open for reading
  std::string name;  // one component, neither "." nor ".."
  std::string problem;
};

// Whether folders on the way may be symbolic links (that stay inside).
enum class Links { follow, refuse };

class Workspace {
 public:
  // path: a folder, relative to the current one or absolute; not itself bounded by anything.
  // False: *problem says why not.
  static bool open(std::string name, const std::string &path, Workspace *out, std::string *problem);

  const std::string &name() const noexcept { return name_; }
  // The folder that it was opened at, absolute and without links.
  const std::string &root() const noexcept { return path_; }

  // Tools may write `bytes` here from now on. Before threads use it.
  void allow_writing(std::uint64_t bytes) noexcept;
  bool writable() const noexcept { return left_ != nullptr; }
  // Takes bytes from what may be written. False: there is not so much left. Thread: any.
  bool take(std::uint64_t bytes) const noexcept;

  // path: as a caller of a tool gives it: relative, without "..". Thread: any, also at once.
  Opened open(std::string_view path, int flags) const;

  // Of such a path. make_folders: those that are missing on the way are made (0777 by umask).
  Place place(std::string_view path, bool make_folders = false, Links links = Links::follow) const;

  // As open, from a folder within that is open already; name: one path component. mode: of what
  // O_CREAT makes.
  static Fd open_below(int folder, const char *name, int flags, mode_t mode = 0) noexcept;

 private:
  Opened open_folder(const std::string &path, bool make, Links links) const;

  std::string name_;
  std::string path_;
  Fd root_;
  std::unique_ptr<std::atomic<std::uint64_t>> left_;
};

// strerror() without its shared buffer.
std::string error_name(int error);

// "path" for a sentence, in quotes and not too long.
std::string shown(std::string_view path);

// The name of a file that this plugin writes beside another, for a moment. Tools do not show it.
bool is_temporary_name(std::string_view name) noexcept;
std::string temporary_name(std::string_view name);

}  // namespace builtin_files
