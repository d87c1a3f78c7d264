// Keeps the standard error output of a child in a log file of limited size, and keeps the last
// lines for error messages. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace connector_stdio {

// An append-only log file. Before a write would make it larger than `bound` bytes, it is renamed to
// PATH.1, so the two files together use at most twice that size.
class RotatedFile {
 public:
  RotatedFile(std::string path, std::uint64_t bound);
  ~RotatedFile();
  RotatedFile(const RotatedFile &) = delete;
  RotatedFile &operator=(const RotatedFile &) = delete;

  // Appends the text, or only its last `bound` bytes if it is longer. If the file cannot be
  // written, drops this text and all later texts; the first call that does so returns false and
  // sets *error.
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

// Keeps the last lines of a stream. The caller must mask configured values first (see hidden.hpp).
class Tail {
 public:
  static constexpr std::size_t max_lines = 8;
  static constexpr std::size_t max_bytes = 400;

  void add(std::string_view text);
  // Returns the last lines for an error message, joined into one string ("a | b") of at most `room`
  // bytes. The last error line ("TypeError: ...") comes first, and stack frames are omitted. The
  // string is empty if nothing was written.
  std::string text(std::size_t room) const;

 private:
  std::string last_;
  bool cut_ = false;  // last_ begins in the middle of a line
};

}  // namespace connector_stdio
