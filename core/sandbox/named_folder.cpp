#include "sandbox/named_folder.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "sandbox/path_walk.hpp"

namespace bulkhead {

NamedFolder resolve_named_folder(const std::string &path, const ViewRequest &request) {
  const PathWalk walk = walk_path(path);
  if (walk.links.empty()) return {walk.exists ? walk.end : path, {}};
  if (walk.given_up || !walk.closed.empty()) {
    return {{},
            path + " leads through a symbolic link, and " +
                (walk.closed.empty() ? "its target cannot be determined"
                                     : walk.closed + " cannot be searched")};
  }
  if (!walk.exists) {
    return {{},
            path +
                " leads through a symbolic link to a folder that does not exist; reload the "
                "profile when it does"};
  }
  // The view of a server to which the folder is granted.
  const ChildView view = plan_view(request);
  if (!view.refused.empty()) return {{}, view.refused};
  const bool granted = std::any_of(view.steps.begin(), view.steps.end(), [&](const ViewStep &step) {
    return step.kind == ViewStep::Kind::bind && step.path == walk.end && step.writable;
  });
  if (granted) return {walk.end, {}};
  if (!view.ignored.empty()) return {{}, view.ignored.front()};
  return {{}, path + " leads to " + walk.end + " through a symbolic link that is not followed"};
}

OwnedFd open_without_links(const std::string &path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  return OwnedFd(
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
}

}  // namespace bulkhead
