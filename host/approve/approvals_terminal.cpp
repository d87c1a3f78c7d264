#include "approve/approvals_terminal.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "common/console.hpp"

namespace bulkhead::program {
namespace {

constexpr std::string_view other_screen = "\x1b[?1049h\x1b[?25l",
                           first_screen = "\x1b[?25h\x1b[?1049l";

// Returns the number of bytes in the encoding of the first key. Arrow keys have three bytes.
std::size_t key_bytes(std::string_view text) noexcept {
  if (text.size() >= 3 && text[0] == '\x1b' && (text[1] == '[' || text[1] == 'O')) return 3;
  return 1;
}

}  // namespace

bool KeyTerminal::possible() noexcept {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

KeyTerminal::KeyTerminal() {
  ::tcgetattr(STDIN_FILENO, &before_);
  termios raw = before_;
  // Without ISIG, Ctrl-C is an ordinary key, so the program can restore the terminal before it
  // exits.
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
  write_stdout(other_screen);
}

KeyTerminal::~KeyTerminal() {
  write_stdout(first_screen);
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
}

std::optional<std::string> KeyTerminal::key(std::uint64_t wait_ms) {
  if (unread_.empty()) {
    pollfd wait{STDIN_FILENO, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(wait_ms)) <= 0) return std::string();
    char buffer[64];
    const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return std::nullopt;
    if (n > 0) unread_.assign(buffer, static_cast<std::size_t>(n));
    if (unread_.empty()) return std::string();
  }
  const std::size_t bytes = key_bytes(unread_);
  std::string out = unread_.substr(0, bytes);
  unread_.erase(0, bytes);
  return out;
}

bool KeyTerminal::show(std::string_view text) {
  return write_stdout(std::string("\x1b[H\x1b[2J").append(text));
}

void KeyTerminal::size(std::size_t *columns, std::size_t *rows) noexcept {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20;
  *columns = known ? size.ws_col : 80;
  *rows = known && size.ws_row >= 8 ? size.ws_row : 24;
}

}  // namespace bulkhead::program
