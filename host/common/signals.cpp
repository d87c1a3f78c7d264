#include "common/signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "common/console.hpp"
#include "host.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::program {
namespace {

constexpr int exit_interrupted = 130;
std::atomic<void (*)(void *)> stop_function{nullptr};
std::atomic<void *> stop_argument{nullptr};
std::atomic<int> asked{0};
bool on_terminal = false;  // set before the handlers are installed
int terminal_fd = -1;      // the controlling terminal; set before the handlers are installed
std::atomic<int> reload_fd{-1};
static_assert(std::atomic<void *>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// A file to remove if a signal terminates the process immediately. The path is stored in a
// fixed-size array because a signal handler cannot allocate memory.
struct KilledFile {
  std::atomic<bool> used{false};
  char path[sizeof(sockaddr_un::sun_path)] = {};
};
constexpr std::size_t max_socket_files = 64;
KilledFile socket_files[max_socket_files];
std::atomic<pid_t> files_owner{0};

[[noreturn]] void end_at_once() {
  if (files_owner.load() == ::getpid()) {
    for (const KilledFile &file : socket_files) {
      if (file.used.load()) ::unlink(file.path);
    }
  }
  ::_exit(exit_interrupted);
}

void on_signal(int) {
  const int saved = errno;
  const auto stop = stop_function.load();
  if (asked.fetch_add(1) > 0 || stop == nullptr) end_at_once();
  // Servers are given a few seconds to exit, so this message tells the user that Ctrl-C has taken
  // effect.
  static constexpr std::string_view text =
      "\r\033[KStopping; press Ctrl-C again to exit immediately.\n";
  if (on_terminal && ::write(STDERR_FILENO, text.data(), text.size()) < 0) on_terminal = false;
  stop(stop_argument.load());
  errno = saved;
}

// Returns true if the terminal was closed after startup. SIGHUP then means that the user has
// disconnected.
bool terminal_closed() noexcept {
  if (terminal_fd < 0) return false;
  pollfd look{terminal_fd, 0, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

void on_hang_up(int signal) {
  const int saved = errno;
  const int fd = reload_fd.load();
  if (fd < 0 || terminal_closed()) {
    on_signal(signal);
  } else {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(fd, &one, sizeof one);
  }
  errno = saved;
}

bh::Callback reload_callback{};

}  // namespace

void watch_reload_signal(Reactor &reactor, bh::Callback on_signal) {
  reload_callback = on_signal;
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return;
  std::uint64_t watch = 0;
  const auto on_event = [](void *, std::int32_t event_fd, std::uint32_t) {
    std::uint64_t times = 0;
    if (::read(event_fd, &times, sizeof times) == sizeof times)
      reload_callback.fn(reload_callback.arg);
  };
  if (reactor.watch(on_signal.arg, fd, BH_FD_READ, on_event, nullptr, &watch) != BH_OK) {
    ::close(fd);
    return;
  }
  reload_fd.store(fd);
}

void install_signal_handlers() {
  on_terminal = Console::get().is_terminal();
  struct sigaction action{};
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);

  action.sa_handler = on_signal;
  action.sa_flags = 0;  // interrupted system calls return EINTR, so every wait ends
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction before{};
  ::sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;
  terminal_fd = ::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  action.sa_handler = on_hang_up;
  ::sigaction(SIGHUP, &action, nullptr);
}

void remove_file_on_kill(const std::string &path) noexcept {
  files_owner.store(::getpid());
  for (KilledFile &file : socket_files) {
    if (file.used.load() || path.size() >= sizeof file.path) continue;
    path.copy(file.path, path.size());
    file.path[path.size()] = '\0';
    return file.used.store(true);
  }
}

void unregister_file(const std::string &path) noexcept {
  for (KilledFile &file : socket_files) {
    if (file.used.load() && path == file.path) file.used.store(false);
  }
}

void set_signalled(bh::Callback stop) noexcept {
  stop_function.store(nullptr);
  stop_argument.store(stop.arg);
  stop_function.store(stop.fn);
}

void set_signalled_host(Host *host) noexcept {
  if (host == nullptr) return set_signalled({});
  set_signalled(bh::callback<&Host::request_stop>(host));
}

bool stop_requested() noexcept {
  return asked.load() > 0;
}

void raise_file_limit() noexcept {
  // A higher limit would slow down child processes that close every possible descriptor at startup.
  constexpr rlim_t enough = 65'536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min(limit.rlim_max, enough);  // RLIM_INFINITY is the largest value
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace bulkhead::program
