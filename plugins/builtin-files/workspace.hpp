// A folder that tools may read, and change if the profile permits it. Every path is resolved by the
// kernel from the folder's descriptor (openat2 with RESOLVE_BENEATH), so that no path and no
// symbolic link leads out of it, even if the tree changes concurrently.
//
// Changes use a Place: an open folder and one name in it. A single name with "nofollow" is resolved
// in that folder only.
#pragma once

#include <dirent.h>
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
  // Transfers ownership of the descriptor to the caller.
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct CloseDirectory {
  void operator()(DIR *directory) const noexcept { ::closedir(directory); }
};
using OpenDirectory = std::unique_ptr<DIR, CloseDirectory>;

// A descriptor, or a sentence with the reason why there is none.
struct Opened {
  Fd fd;
  std::string problem;
  int error = 0;  // errno; 0: the path is invalid and was not passed to the kernel
};

// The parent folder and name of a path, which need not exist.
struct Place {
  Fd folder;         // open for reading
  std::string name;  // one component, neither "." nor ".."
  std::string problem;
};

// Whether parent folders may be symbolic links (within the workspace).
enum class Links { follow, refuse };

class Workspace {
 public:
  // Opens the workspace folder; path: relative to the current folder or absolute. False: *problem
  // has the reason.
  static bool open(std::string name, const std::string &path, Workspace *out, std::string *problem);

  const std::string &name() const noexcept { return name_; }
  // The absolute path of the folder, without links.
  const std::string &root() const noexcept { return path_; }

  // Permits writing of `bytes` in total. Call before threads use the object.
  void allow_writing(std::uint64_t bytes) noexcept;
  bool writable() const noexcept { return left_ != nullptr; }
  // Deducts bytes from the write limit. False: the limit is exceeded. Thread: any.
  bool take(std::uint64_t bytes) const noexcept;

  // Opens a tool's path: relative, without "..". Thread: any, concurrently.
  Opened open(std::string_view path, int flags) const;

  // Resolves a tool's path to a Place. make_folders: missing parents are created (0777 by umask).
  Place place(std::string_view path, bool make_folders = false, Links links = Links::follow) const;

  // Opens one path component below an open folder. mode: for O_CREAT.
  static Fd open_below(int folder, const char *name, int flags, mode_t mode = 0) noexcept;

 private:
  Opened open_folder(const std::string &path, bool make, Links links) const;

  std::string name_;
  std::string path_;
  Fd root_;
  std::unique_ptr<std::atomic<std::uint64_t>> left_;
};

// A path for error texts: quoted and limited in length.
std::string shown(std::string_view path);

// Names of temporary files that this plugin writes beside others. Tools do not list them.
bool is_temporary_name(std::string_view name) noexcept;
std::string temporary_name(std::string_view name);

}  // namespace builtin_files
