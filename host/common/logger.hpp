// The log file, and the log lines on standard error.
//
// The file has mode 0600 and is rotated at max_file_bytes to .1 and .2 (three files in total).
// Several gateways may write to the same file: each line is appended atomically, and only the
// holder of the lock rotates the file.
//
// A broken server fails in the same way at each retry. Therefore standard error shows identical
// lines only once (among the last max_shown_lines different lines), unless verbose output is
// requested.
//
// Thread-safe. If the disk is full, log lines are lost; calls are not affected.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "host.hpp"

namespace bulkhead::program {

class Logger {
 public:
  static constexpr std::uint64_t max_file_bytes = 1ull << 20;
  static constexpr int max_files = 3;
  static constexpr std::size_t max_line_bytes = 8192;
  static constexpr std::size_t max_held_bytes = 64u << 10;
  static constexpr std::size_t max_shown_lines = 256;

  Logger(LogLevel file_level, LogLevel console_level)
      : file_level_(file_level), console_level_(console_level) {}
  ~Logger();
  Logger(const Logger &) = delete;
  Logger &operator=(const Logger &) = delete;

  // Opens the log file. Without one, lines are written only to standard error.
  Result<void> open(const std::string &path);
  void log(LogLevel level, std::string_view component, std::string_view text);
  // Logs only to the file, and suppresses this line on standard error from now on. Used for
  // messages that the user sees in another form.
  void log_to_file(LogLevel level, std::string_view component, std::string_view text);
  // Holds standard error lines until release(), up to max_held_bytes; lines beyond this limit are
  // written only to the file.
  void hold();
  void release();

  const std::string &path() const noexcept { return path_; }
  LogLevel level() const noexcept { return std::min(file_level_, console_level_); }

 private:
  bool open_file();
  void rotate_if_full();
  void write_file(LogLevel level, std::string_view line);
  void show(LogLevel level, const std::string &line);
  bool first_time(const std::string &line);  // requires mutex_

  std::mutex mutex_;
  std::set<std::string, std::less<>> shown_;
  std::string held_;
  bool holding_ = false;
  LogLevel file_level_, console_level_;
  std::string path_;
  int fd_ = -1;
};

std::string_view to_string(LogLevel level) noexcept;

}  // namespace bulkhead::program
