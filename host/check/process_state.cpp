#include "check/process_state.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace bulkhead::check {
namespace {

// Returns the numeric names in a folder. `fd` stays open.
std::set<int> numbers_in(int fd) {
  std::set<int> out;
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  DIR *folder = copy < 0 ? nullptr : ::fdopendir(copy);
  if (folder == nullptr) {
    if (copy >= 0) ::close(copy);
    return out;
  }
  ::rewinddir(folder);
  while (const dirent *entry = ::readdir(folder)) {
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') out.insert(std::atoi(entry->d_name));
  }
  ::closedir(folder);
  out.erase(copy);
  return out;
}

bool same_action(const struct sigaction &a, const struct sigaction &b) {
  return a.sa_flags == b.sa_flags && a.sa_handler == b.sa_handler;
}

}  // namespace

ProcessView::ProcessView()
    : descriptors_(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      threads_(::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

std::set<int> ProcessView::descriptors() const {
  return numbers_in(descriptors_.get());
}

std::string ProcessView::target(int fd) const {
  std::array<char, PATH_MAX> path{};
  const ssize_t n =
      ::readlinkat(descriptors_.get(), std::to_string(fd).c_str(), path.data(), path.size());
  return std::string(path.data(), n < 0 ? 0 : static_cast<std::size_t>(n));
}

std::size_t ProcessView::threads() const {
  return numbers_in(threads_.get()).size();
}

ProcessState process_state() {
  ProcessState state;
  for (int number = 1; number < static_cast<int>(state.actions.size()); ++number) {
    ::sigaction(number, nullptr, &state.actions[static_cast<std::size_t>(number)]);
  }
  ::sigemptyset(&state.mask);
  ::sigprocmask(SIG_SETMASK, nullptr, &state.mask);
  // A plugin that writes to pipes must block this signal, because write(2) cannot suppress it.
  ::sigdelset(&state.mask, SIGPIPE);
  for (char **variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    state.environment.emplace_back(*variable);
  }
  std::array<char, PATH_MAX> folder{};
  if (::getcwd(folder.data(), folder.size()) != nullptr) state.folder = folder.data();
  const char *locale = ::setlocale(LC_ALL, nullptr);
  if (locale != nullptr) state.locale = locale;
  state.umask = ::umask(0);
  ::umask(state.umask);
  return state;
}

std::string difference(const ProcessState &before, const ProcessState &after) {
  for (std::size_t i = 1; i < before.actions.size(); ++i) {
    if (same_action(before.actions[i], after.actions[i])) continue;
    const char *name = ::sigabbrev_np(static_cast<int>(i));
    return std::string("the handler of SIG") + (name == nullptr ? "?" : name);
  }
  if (std::memcmp(&before.mask, &after.mask, sizeof before.mask) != 0) {
    return "the blocked signals of the thread";
  }
  if (before.environment != after.environment) return "the environment";
  if (before.folder != after.folder) return "the working folder";
  if (before.umask != after.umask) return "the umask";
  if (before.locale != after.locale) return "the locale";
  return {};
}

std::uint64_t allocated_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<std::uint64_t>(info.uordblks) + info.hblkhd;
}

}  // namespace bulkhead::check
