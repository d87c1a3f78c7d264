// A full-screen terminal in raw mode. Single-threaded.
#pragma once

#include <termios.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead::program {

// Uses standard input and output. The destructor restores the state of the terminal.
class KeyTerminal {
 public:
  // Returns true if standard input and output are terminals.
  static bool possible() noexcept;

  KeyTerminal();
  ~KeyTerminal();
  KeyTerminal(const KeyTerminal &) = delete;
  KeyTerminal &operator=(const KeyTerminal &) = delete;

  // Waits at most wait_ms for a key, such as "a" or "\x1b[A". Returns an empty string if no key was
  // pressed in that time, and nullopt if the terminal was closed.
  std::optional<std::string> key(std::uint64_t wait_ms);
  // Replaces the contents of the screen. Returns false if the terminal was closed.
  bool show(std::string_view text);
  static void size(std::size_t *columns, std::size_t *rows) noexcept;

 private:
  termios before_{};
  std::string unread_;
};

}  // namespace bulkhead::program
