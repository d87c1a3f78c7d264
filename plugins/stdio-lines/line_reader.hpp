// Splits the bytes of a descriptor into lines.
//
// A complete line is delivered in place, in the read buffer. An incomplete line is copied, and a
// long line is read directly into its own buffer. Runs on the reactor thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "stdio-lines/bytes.hpp"

namespace stdio_lines {

// Larger messages bypass the write queue and get a larger pipe.
inline constexpr std::size_t large_message = 64u << 10;

// Buffers shared by all readers of a plugin instance, because only one reader reads at a time.
struct Scratch {
  static constexpr std::size_t size = 256u << 10;
  static constexpr std::size_t max_spare = 2u << 20;

  std::unique_ptr<char[]> data{new char[size]};
  Bytes spare;  // buffer of the last long line; its pages stay mapped for the next long line

  void give_back(Bytes &&used) noexcept {
    if (used.capacity() <= spare.capacity() || used.capacity() > max_spare) return;
    spare = std::move(used);
    spare.clear();
  }
};

// Receives lines. If on_line or on_too_long returns false, reading stops, and the reader must not
// be used again.
class LineSink {
 public:
  // Receives one non-blank line without its terminator (LF or CRLF). The line is borrowed for the
  // duration of the call.
  virtual bool on_line(std::string_view line) = 0;
  // Called if a line exceeds max_line. `start` contains its first bytes; the remaining bytes are
  // skipped.
  virtual bool on_too_long(std::string_view start) = 0;
  // Called after bytes were read, before their lines are delivered.
  virtual void on_read(std::string_view data) { static_cast<void>(data); }
  // Called before each line. `left` contains the bytes of this read that follow the line.
  virtual void on_left(std::string_view left) { static_cast<void>(left); }

 protected:
  ~LineSink() = default;
};

enum class ReadEnd {
  drained,  // no data available, or paused
  budget,   // the budget is exhausted; more data may be available
  ended,    // end of file
  failed,   // errno contains the reason
  stopped   // stopped by the sink or by a lack of memory
};

class LineReader {
 public:
  static constexpr std::size_t max_read = 1u << 20;  // bytes per read

  // max_line is the maximum length of a line in bytes.
  explicit LineReader(std::size_t max_line) noexcept : max_line_(max_line) {}

  // Reads available data up to about `budget` bytes, so a busy peer cannot block the event loop. If
  // one read empties the descriptor, there is no second read, because the watch is level-triggered.
  ReadEnd read(int fd, Scratch &scratch, LineSink &sink, std::size_t budget);

  // Processes bytes that the caller has read. Returns false if the sink stopped.
  bool feed(std::string_view data, Scratch &scratch, LineSink &sink) {
    return consume(data, scratch, sink);
  }

  // Called by the sink. No lines are delivered and no data is read until resume() is called. Data
  // that was already read is kept, at most max_read bytes.
  void pause() noexcept { paused_ = true; }
  // Delivers the kept lines. The sink may pause again. Returns false if the sink stopped.
  bool resume(Scratch &scratch, LineSink &sink);
  // Skips all bytes up to the next newline. Used if the beginning of the line was lost.
  void skip_line() noexcept { skipping_ = true; }

  // Delivers the last line at the end of the file if it has no terminator.
  void finish(LineSink &sink);

 private:
  bool consume(std::string_view data, Scratch &scratch, LineSink &sink);
  bool keep(std::string_view data, Scratch &scratch, LineSink &sink);
  bool end_line(std::string_view rest, Scratch &scratch, LineSink &sink);
  bool grown(std::size_t n, Scratch &scratch, LineSink &sink);
  bool too_long(std::string_view start, LineSink &sink);
  static bool emit(std::string_view line, LineSink &sink);

  std::size_t max_line_;
  Bytes partial_, kept_;  // an incomplete line; lines kept for resume()
  bool paused_ = false;
  bool skipping_ = false;  // skipping the end of a line that was too long
};

}  // namespace stdio_lines
