// Finds other paths under which a folder is visible because its file system, or a part of it, is
// mounted more than once. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bulkhead {

class MountTable {
 public:
  // The most mounts that are read, which is also the kernel's default limit (fs.mount-max).
  static constexpr std::size_t most = 100'000;

  // Parses the text of /proc/PID/mountinfo. Ignores lines that it cannot parse.
  static MountTable parse(std::string_view text);
  static MountTable of_this_process();
  // How many times of_this_process() could not read the whole table. While this number does not
  // change, the tables are complete.
  static std::size_t failures() noexcept;

  // A mount that shows a path, or a folder that contains it or is in it.
  struct Other {
    std::string at;      // the other path
    std::string inside;  // the part that it shows, without links: the path or one in it
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
