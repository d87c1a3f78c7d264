// A terminal that gives keys one by one and shows one screen. Thread: one.
#pragma once

#include <termios.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bulkhead::program {

// While it lives, standard input and output are its; afterwards they are as they were.
class KeyTerminal {
 public:
  // Are both a terminal?
  static bool possible() noexcept;

  KeyTerminal();
  ~KeyTerminal();
  KeyTerminal(const KeyTerminal &) = delete;
  KeyTerminal &operator=(const KeyTerminal &) = delete;

  // The next key ("a", "\x1b[A"), waiting for it at most so long; empty: none. Nothing: the
  // terminal has gone.
  std::optional<std::string> key(std::uint64_t wait_ms);
  // Replaces the screen; false: nobody sees it any more.
  bool show(std::string_view text);
  static void size(std::size_t *columns, std::size_t *rows) noexcept;

 private:
  termios before_{};
  std::string unread_;
};

}  // namespace bulkhead::program
