// Reads lines from a descriptor.
//
// A line that is complete in the read buffer is delivered in place. An incomplete line is copied,
// and the rest of a long line is read directly into the copy. Runs on the reactor thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "stdio-lines/bytes.hpp"

namespace stdio_lines {

// Outgoing messages larger than this bypass the write queue, and the rest of an incoming line
// larger than this is read directly into its copy. The first large message on a pipe enlarges the
// pipe.
inline constexpr std::size_t large_message = 64u << 10;

// Buffers that all readers of a plugin instance share. Only one reader reads at a time.
struct Scratch {
  static constexpr std::size_t size = 256u << 10;
  static constexpr std::size_t max_spare = 2u << 20;

  std::unique_ptr<char[]> data{new char[size]};
  Bytes spare;  // buffer of an earlier long line; its mapped pages are reused for the next one

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
  // Receives one non-blank line without its terminator (LF or CRLF). The line is valid only during
  // the call.
  virtual bool on_line(std::string_view line) = 0;
  // Called if a line exceeds max_line or memory allocation fails. `start` contains bytes of the
  // line, usually its first ones, possibly followed by bytes of the next lines. The rest of the
  // line is skipped.
  virtual bool on_too_long(std::string_view start) = 0;
  // Called after each read, before the lines are delivered.
  virtual void on_read(std::string_view data) { static_cast<void>(data); }
  // Called before each line. `left` contains the bytes that follow the line in the same read.
  virtual void on_left(std::string_view left) { static_cast<void>(left); }

 protected:
  ~LineSink() = default;
};

enum class ReadEnd {
  drained,  // no data is available, or the reader is paused
  budget,   // the budget is used up; more data may be available
  ended,    // end of file
  failed,   // errno contains the reason
  stopped   // the sink returned false, or memory allocation failed
};

class LineReader {
 public:
  static constexpr std::size_t max_read = 1u << 20;  // bytes per system call

  // max_line is the maximum length of a line in bytes, without the LF.
  explicit LineReader(std::size_t max_line) noexcept : max_line_(max_line) {}

  // Reads available data up to about `budget` bytes, so that a busy peer cannot block the event
  // loop. Does not read again after a short read: the watch is level-triggered, so data that
  // arrives later is reported anyway.
  ReadEnd read(int fd, Scratch &scratch, LineSink &sink, std::size_t budget);

  // Processes bytes that the caller has read. Returns false if the sink returned false or memory
  // allocation failed.
  bool feed(std::string_view data, Scratch &scratch, LineSink &sink) {
    return consume(data, scratch, sink);
  }

  // Called by the sink. Until resume() is called, no data is read and no line is delivered. Data
  // that has already been read (at most max_read bytes) is kept.
  void pause() noexcept { paused_ = true; }
  // Delivers the kept lines. The sink may pause the reader again. Returns false if the sink
  // returned false or memory allocation failed.
  bool resume(Scratch &scratch, LineSink &sink);
  // Skips all bytes up to the next newline. Used if the start of the current line was lost.
  void skip_line() noexcept { skipping_ = true; }

  // Must be called at end of file. Delivers the last line if it has no terminator.
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
  bool skipping_ = false;  // skipping the rest of a line
};

}  // namespace stdio_lines
