// Writes log lines and a progress line to standard error.
//
// If standard error is a terminal, the progress line is the last line on it. The progress line is
// cleared before other text is written and redrawn afterwards. Thread-safe.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

namespace bulkhead::program {

class Console {
 public:
  // Returns the instance that the whole process shares.
  static Console &get();

  bool is_terminal() const noexcept { return is_terminal_; }
  // Returns the width of the terminal in columns, or 80 if the width is unknown.
  static std::size_t width() noexcept;

  // Writes `text`, which must end with a newline. Apart from newlines and tabs, it must not contain
  // control characters (see printable()).
  void write(std::string_view text);
  // Writes `text` without blocking, for threads that serve requests. If standard error cannot
  // accept all of the text immediately, the rest is dropped.
  void offer(std::string_view text);
  // Replaces the progress line; an empty string removes it. Does nothing if standard error is not a
  // terminal or cannot accept the text immediately.
  void progress(std::string_view line);

 private:
  Console();
  std::string with_progress(std::string_view text) const;
  std::mutex mutex_;
  bool is_terminal_;
  std::string progress_;
};

// Writes the whole text to standard output. Returns false if that fails, for example because the
// reader has closed it.
bool write_stdout(std::string_view text);
bool stdout_is_terminal() noexcept;

}  // namespace bulkhead::program
