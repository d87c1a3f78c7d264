// A child's standard error: a log file of limited size, and the last lines for error texts. Runs on
// the reactor thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace connector_stdio {

// An append-only log of at most twice its limit: at `bound` bytes the file is renamed to PATH.1.
class RotatedFile {
 public:
  RotatedFile(std::string path, std::uint64_t bound);
  ~RotatedFile();
  RotatedFile(const RotatedFile &) = delete;
  RotatedFile &operator=(const RotatedFile &) = delete;

  // Returns false if the file cannot be written (only the first time, with *error set); the text is
  // dropped.
  bool write(std::string_view text, int *error);

 private:
  bool open();
  void rotate();

  std::string path_;
  std::uint64_t bound_;
  std::uint64_t size_ = 0;
  int fd_ = -1;
  bool broken_ = false;
};

// The last lines of a stream, after configured values were masked (hidden.hpp).
class Tail {
 public:
  static constexpr std::size_t max_lines = 8;
  static constexpr std::size_t max_bytes = 400;

  void add(std::string_view text);
  // Returns the last lines as one text for errors ("a | b"), at most `room` bytes; empty if nothing
  // was written. The text begins with the last error line ("TypeError: ..."), if any, and omits
  // stack frames.
  std::string text(std::size_t room) const;

 private:
  std::string last_;
  bool cut_ = false;  // last_ begins in the middle of a line
};

}  // namespace connector_stdio
