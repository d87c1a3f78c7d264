// The kinds of changes to the file system view of a child process, in the plan of the view
// (ViewStep) and in the child itself (ChildMount).
#pragma once

#include <cstdint>

namespace bulkhead {

// A `mirror` is an empty folder that is mounted over the original folder. Steps of kind `entry` and
// `link` then fill it.
enum class MountKind : std::uint8_t {
  empty_folder,
  empty_file,
  scratch,
  devices,
  processes,
  bind,
  mirror,
  entry,
  link
};

}  // namespace bulkhead
