// Finds other paths under which a folder is visible because its file system, or a part of it, is
// mounted more than once. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

class MountTable {
 public:
  // Maximum number of mounts that are read; equal to the kernel's default limit (fs.mount-max).
  static constexpr std::size_t most = 100'000;

  // Parses the text of /proc/PID/mountinfo. Ignores lines that it cannot parse.
  static MountTable parse(std::string_view text);
  static MountTable of_this_process();
  // Returns how often of_this_process() has failed to read the whole table. If two calls return the
  // same number, the tables read between them are complete.
  static std::size_t failures() noexcept;

  // Another path at which a file or folder, or a part of the folder, is visible.
  struct Other {
    std::string at;      // the other path
    std::string inside;  // what is visible there: the original path, or a path inside it
  };
  // Returns the other paths of a file or folder, which must be absolute and without links. With
  // `visible`, omits those that a later mount hides.
  std::vector<Other> others(const std::string &path, bool visible = true) const;

 private:
  struct Mount {
    std::string device, root, at;
  };
  std::vector<Mount> mounts_;
};

}  // namespace bulkhead
