// Writes messages as lines. Messages of one turn of the loop are queued and written with one system
// call; large messages bypass the queue. Used on the reactor thread.
#pragma once

#include <bulkhead/abi/core.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "stdio-lines/bytes.hpp"

namespace stdio_lines {

enum class Flush {
  done,     // the queue is empty
  blocked,  // the rest is queued until the descriptor is writable
  broken    // errno has the reason; no more data may be written to the descriptor
};

class LineWriter {
 public:
  // `bound` is the limit of queued bytes; a message that exceeds it is rejected. An empty queue
  // accepts one message of any size: the host already limits it (message_bytes), and a rejected
  // message could never be sent.
  explicit LineWriter(std::size_t bound) noexcept : bound_(bound) {}

  std::size_t waiting() const noexcept { return queue_.size() - head_; }
  // The number of bytes written so far, and the stream offset at which the last queued line ends.
  std::uint64_t written() const noexcept { return written_; }
  std::uint64_t end() const noexcept { return written_ + waiting(); }

  // Queues one line: the concatenated parts and a newline. Raw newlines in the parts (white space
  // of a pretty-printed message) become spaces. Returns false if the queue is full; nothing was
  // queued.
  bool add(std::span<const bh_str> parts) noexcept;

  // Queues `head` and the parts unchanged, for streams that do not delimit messages with newlines.
  // Returns the same as add().
  bool add_raw(std::string_view head, std::span<const bh_str> parts) noexcept;

  // Writes the queue.
  Flush flush(int fd) noexcept;

  // Combines add() and flush(). A large message is written from the caller's memory, and only the
  // unwritten rest is copied. *taken is the result of add().
  Flush add_and_flush(int fd, std::span<const bh_str> parts, bool *taken) noexcept;

  void drop() noexcept;

 private:
  Flush write_direct(int fd, std::span<const bh_str> parts, std::size_t total) noexcept;
  bool fits(std::size_t total) const noexcept {
    return waiting() == 0 || waiting() + total + 1 <= bound_;
  }

  std::size_t bound_;
  Bytes queue_;
  std::size_t head_ = 0;  // number of written bytes of queue_
  std::uint64_t written_ = 0;
};

// Blocks SIGPIPE for this thread, so that a write to a closed descriptor fails with EPIPE. The
// signal dispositions of an embedding program do not change.
void block_pipe_signal() noexcept;

// Returns the total size of the parts in bytes.
std::size_t total_size(std::span<const bh_str> parts) noexcept;

}  // namespace stdio_lines
