#include "builtin-files/remove.hpp"

#include <bulkhead/cpp/text.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "builtin-files/workspace.hpp"

namespace builtin_files {
namespace {

constexpr int max_levels = 64;

class Remover {
 public:
  explicit Remover(const std::function<bool()> &stop) : stop_(stop) {}

  void remove(int folder, const std::string &name, int level) {
    if (stop_()) return fail("the call was cancelled or timed out");
    if (::unlinkat(folder, name.c_str(), 0) == 0) return count();
    if (errno == ENOENT) return;
    // The error that unlinkat() returns for a folder depends on the file system.
    if (errno != EISDIR && errno != EPERM) return fail_at(name);
    if (level == max_levels) return fail("folders are more than 64 levels deep");
    empty(folder, name, level);
    if (!removed_.problem.empty()) return;
    if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0) return count();
    if (errno != ENOENT) fail_at(name);
  }
  const Removed &result() const { return removed_; }

 private:
  void empty(int folder, const std::string &name, int level) {
    Fd fd = Workspace::open_below(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!fd.valid()) return fail_at(name);
    const OpenDirectory dir(::fdopendir(fd.get()));
    if (!dir) return fail_at(name);
    const int inside = fd.release();
    // If another process adds an entry at this point, the folder cannot be removed later, and that
    // error is reported.
    while (const dirent *entry = ::readdir(dir.get())) {
      const std::string child = entry->d_name;
      if (child == "." || child == "..") continue;
      remove(inside, child, level + 1);
      if (!removed_.problem.empty()) return;
    }
  }
  void count() { ++removed_.files; }
  void fail_at(const std::string &name) {
    fail(shown(name) + " cannot be removed: " + bh::error_name(errno));
  }
  void fail(std::string problem) { removed_.problem = std::move(problem); }

  const std::function<bool()> &stop_;
  Removed removed_;
};

}  // namespace

Removed remove_tree(int folder, const std::string &name, const std::function<bool()> &stop) {
  Remover remover(stop);
  remover.remove(folder, name, 0);
  return remover.result();
}

}  // namespace builtin_files
