// Cuts what a descriptor delivers into lines.
//
// A whole line is handed over where it was read to; only a line that one read did not finish is
// copied, and a long one is read directly into its own buffer. Thread: the reactor's.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "stdio-lines/bytes.hpp"

namespace stdio_lines {

// A message larger than this is "large": worth a larger pipe, written past the queue, ...
inline constexpr std::size_t large_message = 64u << 10;

// Space that all readers of a plugin instance share, because only one of them reads at a time.
struct Scratch {
  static constexpr std::size_t size = 256u << 10;
  static constexpr std::size_t max_spare = 2u << 20;

  std::unique_ptr<char[]> data{new char[size]};
  Bytes spare;  // the last long line's buffer, so that the next one finds its pages mapped

  void give_back(Bytes &&used) noexcept {
    if (used.capacity() <= spare.capacity() || used.capacity() > max_spare) return;
    spare = std::move(used);
    spare.clear();
  }
};

// Both return false to stop reading; the reader must then not be used again.
class LineSink {
 public:
  // One line without its end (LF or CRLF), never blank. Borrowed until the call returns.
  virtual bool on_line(std::string_view line) = 0;
  // A line is longer than allowed; the rest of it will be skipped. `start`: how it begins.
  virtual bool on_too_long(std::string_view start) = 0;
  // Bytes were read, before anything of them is handed over.
  virtual void on_read(std::string_view data) { static_cast<void>(data); }
  // A line is going to be handed over: what of this read will be left then.
  virtual void on_left(std::string_view left) { static_cast<void>(left); }

 protected:
  ~LineSink() = default;
};

enum class ReadEnd {
  drained,  // nothing more now, or paused
  budget,   // there may be more
  ended,    // end of file
  failed,   // errno says why
  stopped   // the sink wanted so, or there was no memory
};

class LineReader {
 public:
  static constexpr std::size_t max_read = 1u << 20;  // bytes, at a time

  // max_line: bytes of the longest line that is accepted.
  explicit LineReader(std::size_t max_line) noexcept : max_line_(max_line) {}

  // Reads what is there, about `budget` bytes at most, so that one talkative peer cannot keep the
  // loop. Reads once when that empties the descriptor: the watch is level-triggered.
  ReadEnd read(int fd, Scratch &scratch, LineSink &sink, std::size_t budget);

  // Takes bytes that were read elsewhere; false: the sink wants no more.
  bool feed(std::string_view data, Scratch &scratch, LineSink &sink) {
    return consume(data, scratch, sink);
  }

  // From inside the sink: no further line is handed over and nothing more is read until resume().
  // What has been read is kept, at most max_read bytes.
  void pause() noexcept { paused_ = true; }
  // Hands over what was kept, and may be paused again by that; false: the sink wants no more.
  bool resume(Scratch &scratch, LineSink &sink);
  // What comes next is the rest of a line whose beginning is lost.
  void skip_line() noexcept { skipping_ = true; }

  // At end of file: hands over a last line that lacks its end.
  void finish(LineSink &sink);

 private:
  bool consume(std::string_view data, Scratch &scratch, LineSink &sink);
  bool keep(std::string_view data, Scratch &scratch, LineSink &sink);
  bool end_line(std::string_view rest, Scratch &scratch, LineSink &sink);
  bool grown(std::size_t n, Scratch &scratch, LineSink &sink);
  bool too_long(std::string_view start, LineSink &sink);
  static bool emit(std::string_view line, LineSink &sink);

  std::size_t max_line_;
  Bytes partial_, kept_;  // an unfinished line; lines that wait for resume()
  bool paused_ = false;
  bool skipping_ = false;  // the rest of a line that was too long
};

}  // namespace stdio_lines
