// A folder that tools may read, and may change if the profile permits it. The kernel resolves every
// path relative to the folder's descriptor (openat2 with RESOLVE_BENEATH). No path or symbolic link
// can lead out of the folder, even if the tree changes concurrently.
//
// Changes use a Place: an open folder and one name in it. A single name opened with O_NOFOLLOW is
// resolved only in that folder.
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

// A descriptor, or an error message.
struct Opened {
  Fd fd;
  std::string problem;
  int error = 0;  // errno; 0 if the path is invalid and was not passed to the kernel
};

// The parent folder and the name of a path. The path need not exist.
struct Place {
  Fd folder;         // open for reading
  std::string name;  // one component, neither "." nor ".."
  std::string problem;
};

// Determines whether parent folders may be symbolic links (within the workspace).
enum class Links { follow, refuse };

class Workspace {
 public:
  // Opens the workspace folder. `path` is absolute or relative to the current folder. Returns false
  // and sets *problem on failure.
  static bool open(std::string name, const std::string &path, Workspace *out, std::string *problem);

  const std::string &name() const noexcept { return name_; }
  // Returns the absolute path of the folder, with all links resolved.
  const std::string &root() const noexcept { return path_; }

  // Permits writing up to `bytes` in total. Must be called before other threads use the object.
  void allow_writing(std::uint64_t bytes) noexcept;
  bool writable() const noexcept { return left_ != nullptr; }
  // Deducts bytes from the write limit. Returns false if the limit is exceeded. Thread-safe.
  bool take(std::uint64_t bytes) const noexcept;

  // Opens a path from a tool's arguments. It must be relative and must not contain "..".
  // Thread-safe.
  Opened open(std::string_view path, int flags) const;

  // Resolves a path from a tool's arguments to a Place. If make_folders is set, missing parents are
  // created (mode 0777 before umask).
  Place place(std::string_view path, bool make_folders = false, Links links = Links::follow) const;

  // Opens one path component in an open folder. `mode` is used with O_CREAT.
  static Fd open_below(int folder, const char *name, int flags, mode_t mode = 0) noexcept;

 private:
  Opened open_folder(const std::string &path, bool make, Links links) const;

  std::string name_;
  std::string path_;
  Fd root_;
  std::unique_ptr<std::atomic<std::uint64_t>> left_;
};

// Returns a path for error messages, quoted and limited in length.
std::string shown(std::string_view path);

// Names of temporary files that this plugin writes next to other files. Tools do not list them.
bool is_temporary_name(std::string_view name) noexcept;
std::string temporary_name(std::string_view name);

}  // namespace builtin_files
