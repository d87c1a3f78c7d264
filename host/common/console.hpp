// Standard error, shared by log lines and one progress line at the bottom of a terminal.
//
// Thread: any. The progress line is cleared before other text and drawn again after it.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace bulkhead::program {

class Console {
 public:
  // The terminal's standard error; there is one.
  static Console &get();

  bool is_terminal() const noexcept { return is_terminal_; }
  // Columns of the terminal, 80 if unknown.
  static std::size_t width() noexcept;

  // Writes text, which ends with a new line, and is printable (see text.hpp).
  void write(std::string_view text);
  // The same without ever waiting: lines that nobody takes now are lost. For whoever serves others
  // meanwhile.
  void offer(std::string_view text);
  // Shows one line that is replaced by the next; empty removes it. Nothing if not a terminal, or if
  // it takes nothing now.
  void progress(std::string_view line);

 private:
  Console();
  std::string with_progress(std::string_view text) const;
  std::mutex mutex_;
  bool is_terminal_;
  std::string progress_;
};

// Writes everything to standard output; false when nobody reads it any more.
bool write_stdout(std::string_view text);
bool stdout_is_terminal() noexcept;

}  // namespace bulkhead::program
