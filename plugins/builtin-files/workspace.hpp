// A folder whose files the tools may read, and may also change if the profile permits it. The
// kernel resolves every path relative to the open folder (openat2 with RESOLVE_BENEATH). Therefore
// no path or symbolic link can lead out of the folder, even if another process changes the tree
// concurrently.
//
// Tools change files through a Place: an open folder and one name in it. Opening a single name with
// O_NOFOLLOW cannot leave that folder.
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

// An open file or folder, or an error message.
struct Opened {
  Fd fd;
  std::string problem;
  int error = 0;  // errno; 0 if the path was rejected before a system call
};

// The open parent folder and the last component of a path, or an error message. The path need not
// exist.
struct Place {
  Fd folder;         // open for reading
  std::string name;  // one component, neither "." nor ".."
  std::string problem;
};

// Specifies whether symbolic links in the path of a folder are followed. If the path is from the
// arguments of a tool, links cannot leave the workspace.
enum class Links { follow, refuse };

class Workspace {
 public:
  // Opens the workspace folder. `path` is absolute or relative to the working directory. Returns
  // false and sets *problem on failure.
  static bool open(std::string name, const std::string &path, Workspace *out, std::string *problem,
                   Links links = Links::follow);

  // Opens a folder of the configuration. With Links::refuse, fails with ELOOP if any component of
  // the path is a symbolic link. Sets errno on failure.
  static Fd open_named(const std::string &path, int flags, Links links) noexcept;

  const std::string &name() const noexcept { return name_; }
  // Returns the absolute path of the folder without symbolic links.
  const std::string &root() const noexcept { return path_; }

  // Permits tools to write up to `bytes` in total. Must be called before other threads use this
  // object.
  void allow_writing(std::uint64_t bytes) noexcept;
  bool writable() const noexcept { return left_ != nullptr; }
  // Subtracts `bytes` from the remaining write limit. Returns false if too few bytes remain.
  // Requires writable(). Thread-safe.
  bool take(std::uint64_t bytes) const noexcept;

  // Opens a path from the arguments of a tool. The path must be relative and must not contain "..".
  // Thread-safe.
  Opened open(std::string_view path, int flags) const;

  // Returns the Place of a path from the arguments of a tool. If make_folders is set, creates
  // missing parent folders with mode 0777 minus the umask.
  Place place(std::string_view path, bool make_folders = false, Links links = Links::follow) const;

  // Opens the entry `name` of an open folder. `mode` is used only with O_CREAT.
  static Fd open_below(int folder, const char *name, int flags, mode_t mode = 0) noexcept;

 private:
  Opened open_folder(const std::string &path, bool make, Links links) const;

  std::string name_;
  std::string path_;
  Fd root_;
  std::unique_ptr<std::atomic<std::uint64_t>> left_;
};

// Quotes and truncates a path for error messages.
std::string shown(std::string_view path);

// temporary_name() returns the name of the temporary file that is written next to the file `name`.
// is_temporary_name() recognizes such names. Tools do not list these files.
bool is_temporary_name(std::string_view name) noexcept;
std::string temporary_name(std::string_view name);

}  // namespace builtin_files
