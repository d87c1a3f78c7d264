// A terminal that is read key by key and shows one screen. Thread: one.
#pragma once

#include <termios.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead::program {

// Owns standard input and output during its lifetime and restores their state at the end.
class KeyTerminal {
 public:
  // Standard input and output are both a terminal.
  static bool possible() noexcept;

  KeyTerminal();
  ~KeyTerminal();
  KeyTerminal(const KeyTerminal &) = delete;
  KeyTerminal &operator=(const KeyTerminal &) = delete;

  // Waits at most wait_ms for the next key ("a", "\x1b[A"). Empty: none was pressed. nullopt: the
  // terminal was closed.
  std::optional<std::string> key(std::uint64_t wait_ms);
  // Replaces the screen. False: the terminal was closed.
  bool show(std::string_view text);
  static void size(std::size_t *columns, std::size_t *rows) noexcept;

 private:
  termios before_{};
  std::string unread_;
};

}  // namespace bulkhead::program
