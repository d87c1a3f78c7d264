// What a child writes to its standard error: a bounded file for people, the last lines for error
// texts. Thread: the reactor's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace connector_stdio {

// An append-only file that keeps at most twice its bound: at `bound` bytes it becomes PATH.1.
class RotatedFile {
 public:
  RotatedFile(std::string path, std::uint64_t bound);
  ~RotatedFile();
  RotatedFile(const RotatedFile &) = delete;
  RotatedFile &operator=(const RotatedFile &) = delete;

  // False when it cannot be written (the first time, with *error set); then nothing is kept.
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

// The last lines of a stream, out of which configured values were masked (hidden.hpp).
class Tail {
 public:
  static constexpr std::size_t max_lines = 8;
  static constexpr std::size_t max_bytes = 400;

  void add(std::string_view text);
  // The last lines as one text fit for an error ("a | b"), at most `room` bytes; empty when nothing
  // was written. It begins with the last line that names an error ("TypeError: ..."), if there is
  // one, and has none that only say where in the code it was.
  std::string text(std::size_t room) const;

 private:
  std::string last_;
  bool cut_ = false;  // last_ does not begin where the stream or a line begins
};

}  // namespace connector_stdio
