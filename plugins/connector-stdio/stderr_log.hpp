// A child's standard error: a log file of limited size, and the last lines for error messages. Runs
// on the reactor thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace connector_stdio {

// An append-only log. At `bound` bytes, the file is renamed to PATH.1, so both files use at most
// twice the limit.
class RotatedFile {
 public:
  RotatedFile(std::string path, std::uint64_t bound);
  ~RotatedFile();
  RotatedFile(const RotatedFile &) = delete;
  RotatedFile &operator=(const RotatedFile &) = delete;

  // If the file cannot be written, the text is dropped. In this case, the first call returns false
  // and sets *error.
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

// Keeps the last lines of a stream, after masking of configured values (hidden.hpp).
class Tail {
 public:
  static constexpr std::size_t max_lines = 8;
  static constexpr std::size_t max_bytes = 400;

  void add(std::string_view text);
  // Returns the last lines joined into one string for error messages ("a | b"), at most `room`
  // bytes. Returns an empty string if nothing was written. The last error line ("TypeError: ...")
  // comes first, and stack frames are omitted.
  std::string text(std::size_t room) const;

 private:
  std::string last_;
  bool cut_ = false;  // last_ begins in the middle of a line
};

}  // namespace connector_stdio
