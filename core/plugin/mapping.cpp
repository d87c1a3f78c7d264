#include "plugin/mapping.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <boost/dll/shared_library.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace bulkhead {
namespace {

struct Mapped {
  dev_t device;
  ino_t inode;
  off_t size;
  timespec modified;
  std::string sealed_sha256;
  OwnedFd fd;
  boost::dll::shared_library library;
};

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<Mapped>> mapped;
  std::string stuck;
  bool exit_handler = false;
};

// Never destroyed, so that no library is unmapped at exit while a thread may be running its code.
Registry &registry() {
  static Registry &instance = *new Registry;
  return instance;
}

bool same_time(const timespec &a, const timespec &b) noexcept {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// Extracts the dynamic linker's message from an exception's text: "boost::dll::...() failed
// (dlerror system message: /proc/self/fd/7: undefined symbol: x): Bad ...".
std::string linker_text(std::string text, const std::string &fd_path) {
  static constexpr std::string_view mark = "(dlerror system message: ";
  if (const auto at = text.find(mark); at != std::string::npos) text.erase(0, at + mark.size());
  if (const auto end = text.rfind("): "); end != std::string::npos) text.erase(end);
  if (text.starts_with(fd_path + ": ")) text.erase(0, fd_path.size() + 2);
  return text;
}

Result<bh_plugin_entry_fn> entry_of(const boost::dll::shared_library &library) {
  try {
    return library.get<const bh_entry *()>(BH_PLUGIN_ENTRY_SYMBOL);
  } catch (const std::exception &e) {
    return fail(BH_E_ABI, std::string("has no usable " BH_PLUGIN_ENTRY_SYMBOL ": ") + e.what());
  }
}

void leave_without_linker(int status, void *) {
  std::string name;
  {
    const std::lock_guard lock(registry().mutex);
    name = registry().stuck;
  }
  if (name.empty()) return;
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace

Result<bh_plugin_entry_fn> map_library(OwnedFd fd, const struct stat &status,
                                       const std::string &sealed_sha256) {
  Registry &r = registry();
  {
    const std::lock_guard lock(r.mutex);
    for (const auto &m : r.mapped) {
      if (m->sealed_sha256 != sealed_sha256) continue;
      if (!sealed_sha256.empty()) return entry_of(m->library);
      if (m->device != status.st_dev || m->inode != status.st_ino) continue;
      if (m->size != status.st_size || !same_time(m->modified, status.st_mtim)) {
        return fail(BH_E_INVALID,
                    "was changed in place while it was loaded; to install a new version, rename it "
                    "over the old file (cp to a new name, then mv)");
      }
      return entry_of(m->library);
    }
  }
  const std::string fd_path = "/proc/self/fd/" + std::to_string(fd.get());
  auto mapped = std::make_unique<Mapped>();
  mapped->device = status.st_dev;
  mapped->inode = status.st_ino;
  mapped->size = status.st_size;
  mapped->modified = status.st_mtim;
  mapped->sealed_sha256 = sealed_sha256;
  try {
    using boost::dll::load_mode::rtld_local;
    using boost::dll::load_mode::rtld_now;
    mapped->library.load(fd_path, rtld_now | rtld_local);
  } catch (const std::exception &e) {
    return fail(BH_E_INVALID, "cannot be mapped: " + linker_text(e.what(), fd_path));
  }
  mapped->fd = std::move(fd);
  auto entry = entry_of(mapped->library);
  const std::lock_guard lock(r.mutex);
  r.mapped.push_back(std::move(mapped));
  return entry;
}

void set_stuck(std::string plugin) {
  Registry &r = registry();
  const std::lock_guard lock(r.mutex);
  r.stuck = std::move(plugin);
  if (!r.stuck.empty() && !r.exit_handler)
    r.exit_handler = ::on_exit(leave_without_linker, nullptr) == 0;
}

std::string stuck() {
  const std::lock_guard lock(registry().mutex);
  return registry().stuck;
}

}  // namespace bulkhead
