// Standard error, shared by log lines and one progress line at the bottom of a terminal.
//
// Thread-safe. The progress line is cleared before other text is written, and redrawn afterwards.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace bulkhead::program {

class Console {
 public:
  // Returns the only instance.
  static Console &get();

  bool is_terminal() const noexcept { return is_terminal_; }
  // Returns the terminal's width in columns, or 80 if it is unknown.
  static std::size_t width() noexcept;

  // Writes text, which must be printable (see text.hpp) and end with a newline.
  void write(std::string_view text);
  // Writes text without blocking, for threads that serve requests. Text that standard error does
  // not accept immediately is lost.
  void offer(std::string_view text);
  // Shows a progress line, which the next call replaces. An empty line removes it. Does nothing if
  // standard error is not a terminal or does not accept text immediately.
  void progress(std::string_view line);

 private:
  Console();
  std::string with_progress(std::string_view text) const;
  std::mutex mutex_;
  bool is_terminal_;
  std::string progress_;
};

// Writes all text to standard output. Returns false if the reader has closed it.
bool write_stdout(std::string_view text);
bool stdout_is_terminal() noexcept;

}  // namespace bulkhead::program
