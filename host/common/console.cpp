#include "common/console.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "common/text.hpp"

namespace bulkhead::program {
namespace {

// Like write_all(), but waits up to 1 s if the descriptor does not block.
bool write_waiting(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {  // another program has made the descriptor non-blocking
      pollfd wait{fd, POLLOUT, 0};
      if (::poll(&wait, 1, 1000) <= 0) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

// Writes at most PIPE_BUF bytes at a time, because a writable pipe or terminal accepts that many
// without blocking.
void offer_all(int fd, std::string_view text) {
  while (!text.empty()) {
    pollfd ready{fd, POLLOUT, 0};
    if (::poll(&ready, 1, 0) <= 0) return;
    const ssize_t n = ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

Console::Console() {
  const char *term = std::getenv("TERM");
  is_terminal_ =
      ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

Console &Console::get() {
  static Console console;
  return console;
}

std::size_t Console::width() noexcept {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  return 80;
}

std::string Console::with_progress(std::string_view text) const {
  if (progress_.empty()) return std::string(text);
  return "\r\033[K" + std::string(text) + progress_;
}

void Console::write(std::string_view text) {
  const std::lock_guard lock(mutex_);
  write_waiting(STDERR_FILENO, with_progress(text));
}

void Console::offer(std::string_view text) {
  const std::lock_guard lock(mutex_);
  offer_all(STDERR_FILENO, with_progress(text));
}

void Console::progress(std::string_view line) {
  if (!is_terminal_) return;
  const std::lock_guard lock(mutex_);
  std::string next = first_line(line, width() - 1);
  if (next == progress_) return;
  progress_ = std::move(next);
  offer_all(STDERR_FILENO, "\r\033[K" + progress_);
}

bool write_stdout(std::string_view text) {
  return write_waiting(STDOUT_FILENO, text);
}

bool stdout_is_terminal() noexcept {
  return ::isatty(STDOUT_FILENO) == 1;
}

}  // namespace bulkhead::program
