// Writes log lines to the log file and to standard error.
//
// The log file has mode 0600. When it reaches max_file_bytes, it is renamed to .1, and the previous
// .1 is renamed to .2, so there are at most three files. Several gateways may share the file: each
// line is appended atomically, and the file is rotated under a lock.
//
// A broken server fails with the same message on every retry. Standard error therefore shows each
// line only once, unless verbose output is requested. To detect repeated lines, the logger
// remembers up to max_shown_lines lines.
//
// Thread-safe. Log lines that cannot be written, for example because the disk is full, are dropped.
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

  // Opens the log file. Without a log file, lines are written only to standard error.
  Result<void> open(const std::string &path);
  void log(LogLevel level, std::string_view component, std::string_view text);
  // Writes the line only to the log file, and suppresses later copies of it on standard error. For
  // messages that are shown to the user in another form.
  void log_to_file(LogLevel level, std::string_view component, std::string_view text);
  // hold() buffers the lines for standard error until release(). If the buffer exceeds
  // max_held_bytes, further lines are written only to the log file.
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
