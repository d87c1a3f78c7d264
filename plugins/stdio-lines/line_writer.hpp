// Writes messages as lines: collects what one turn of the loop produces, so that it costs one
// system call; large messages go past the queue. Thread: the reactor's.
#pragma once

#include <bulkhead/abi/core.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "stdio-lines/bytes.hpp"

namespace stdio_lines {

enum class Flush {
  done,     // nothing waits
  blocked,  // the rest waits until the descriptor is writable
  broken    // errno says why; nothing will ever be written again
};

class LineWriter {
 public:
  // bound: bytes that may wait; what does not fit is refused. One message of any size fits when
  // nothing waits: its own bound is the host's message_bytes, and refusing it would be for ever.
  explicit LineWriter(std::size_t bound) noexcept : bound_(bound) {}

  std::size_t waiting() const noexcept { return queue_.size() - head_; }
  // Bytes that have gone so far, and where the last line that was taken ends among them.
  std::uint64_t written() const noexcept { return written_; }
  std::uint64_t end() const noexcept { return written_ + waiting(); }

  // Queues one line: the parts without gap and a newline. Raw newlines within them (white space of
  // a pretty-printed message) become spaces. False: it does not fit, and nothing was taken.
  bool add(std::span<const bh_str> parts) noexcept;

  // Queues `head` and the parts as they are: messages of a stream that does not end them by
  // newlines. False as for add().
  bool add_raw(std::string_view head, std::span<const bh_str> parts) noexcept;

  // Writes what waits.
  Flush flush(int fd) noexcept;

  // add() and flush(), but a large message is written from where it lies and only the rest of it
  // is copied. *taken as the result of add().
  Flush add_and_flush(int fd, std::span<const bh_str> parts, bool *taken) noexcept;

  void drop() noexcept;

 private:
  Flush write_direct(int fd, std::span<const bh_str> parts, std::size_t total) noexcept;
  bool fits(std::size_t total) const noexcept {
    return waiting() == 0 || waiting() + total + 1 <= bound_;
  }

  std::size_t bound_;
  Bytes queue_;
  std::size_t head_ = 0;  // of queue_, already written
  std::uint64_t written_ = 0;
};

// Whoever has gone must show as EPIPE when written to, not end the program. Only this thread's mask
// changes, not what an embedding program does with its signals.
void block_pipe_signal() noexcept;

// Bytes of all parts together.
std::size_t total_size(std::span<const bh_str> parts) noexcept;

}  // namespace stdio_lines
