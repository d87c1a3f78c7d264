#include "common/logger.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "bulkhead/cpp/clock.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"

namespace bulkhead::program {
namespace {

std::string timestamp() {
  const std::uint64_t now = bh::unix_ms();
  const auto seconds = static_cast<std::time_t>(now / 1000);
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 48> buffer;
  const int n = std::snprintf(buffer.data(), buffer.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
                              parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                              parts.tm_min, parts.tm_sec, static_cast<int>(now % 1000));
  return {buffer.data(), static_cast<std::size_t>(n)};
}

std::string one_line(std::string_view component, std::string_view text) {
  std::string out = printable(component) + ": ";
  out += printable(text.substr(0, Logger::max_line_bytes));
  if (text.size() > Logger::max_line_bytes) out += " [cut]";
  return out;
}

}  // namespace

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warn:
      return "warn";
    case LogLevel::error:
      return "error";
  }
  return "?";
}

Logger::~Logger() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> Logger::open(const std::string &path) {
  path_ = path;
  if (!open_file()) {
    const int error = errno;
    path_.clear();
    return fail(BH_E_INTERNAL, describe_errno("cannot write the log " + path, error));
  }
  return {};
}

bool Logger::open_file() {
  const int fd =
      ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  return true;
}

void Logger::rotate_if_full() {
  struct stat mine{};
  if (::fstat(fd_, &mine) != 0 || static_cast<std::uint64_t>(mine.st_size) < max_file_bytes) return;
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) return;  // another gateway is rotating the file
  struct stat now{};
  const bool still_ours = ::stat(path_.c_str(), &now) == 0 && now.st_ino == mine.st_ino;
  if (still_ours) {
    for (int i = max_files - 1; i > 0; --i) {
      const std::string from = i == 1 ? path_ : path_ + "." + std::to_string(i - 1);
      ::rename(from.c_str(), (path_ + "." + std::to_string(i)).c_str());
    }
  }
  ::flock(fd_, LOCK_UN);
  open_file();
}

void Logger::write_file(LogLevel level, std::string_view line) {
  if (fd_ < 0 || level < file_level_) return;
  const std::string stamped =
      timestamp() + " " + std::string(to_string(level)) + " " + std::string(line) + "\n";
  const std::lock_guard lock(mutex_);
  rotate_if_full();
  // There is nowhere to report a write error.
  if (::write(fd_, stamped.data(), stamped.size()) < 0) return;
}

bool Logger::first_time(const std::string &line) {
  if (shown_.size() >= max_shown_lines) shown_.clear();
  return shown_.insert(line).second;
}

void Logger::show(LogLevel level, const std::string &line) {
  if (level < console_level_) return;
  const std::string text =
      (level >= LogLevel::error ? "bulkhead: error: " : "bulkhead: ") + line + "\n";
  {
    const std::lock_guard lock(mutex_);
    if (console_level_ >= LogLevel::warn && !first_time(line)) return;
    if (holding_) {
      if (held_.size() + text.size() <= max_held_bytes) held_ += text;
      return;
    }
  }
  Console::get().offer(text);
}

void Logger::log(LogLevel level, std::string_view component, std::string_view text) {
  if (level < this->level()) return;
  const std::string line = one_line(component, text);
  write_file(level, line);
  show(level, line);
}

void Logger::log_to_file(LogLevel level, std::string_view component, std::string_view text) {
  if (level < this->level()) return;
  const std::string line = one_line(component, text);
  write_file(level, line);
  const std::lock_guard lock(mutex_);
  first_time(line);
}

void Logger::hold() {
  const std::lock_guard lock(mutex_);
  holding_ = true;
}

void Logger::release() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    holding_ = false;
    text.swap(held_);
  }
  if (!text.empty()) Console::get().offer(text);
}

}  // namespace bulkhead::program
