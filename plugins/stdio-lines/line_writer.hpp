// Writes messages as lines. All messages from one event loop iteration are queued and written with
// a single system call. Large messages bypass the queue. Runs on the reactor thread.
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
  blocked,  // the rest stays queued until the descriptor is writable
  broken    // errno contains the reason; the descriptor must not be used again
};

class LineWriter {
 public:
  // `bound` limits the queued bytes. A message that would exceed the limit is rejected. An empty
  // queue, however, accepts a message of any size, because such a message could otherwise never be
  // sent. The host limits the size of each message (message_bytes).
  explicit LineWriter(std::size_t bound) noexcept : bound_(bound) {}

  std::size_t waiting() const noexcept { return queue_.size() - head_; }
  // written() returns the number of bytes written to the stream. end() returns the stream offset
  // after the last queued line.
  std::uint64_t written() const noexcept { return written_; }
  std::uint64_t end() const noexcept { return written_ + waiting(); }

  // Queues the concatenated parts and a newline as one line. CR and LF in the parts (pretty-printed
  // JSON) become spaces. If the queue is full or memory allocation fails, returns false and queues
  // nothing.
  bool add(std::span<const bh_str> parts) noexcept;

  // Queues `head` and the parts unchanged, for streams that are not split at newlines. If the queue
  // is full or memory allocation fails, returns false and queues nothing.
  bool add_raw(std::string_view head, std::span<const bh_str> parts) noexcept;

  Flush flush(int fd) noexcept;

  // Combines add() and flush(), for large messages. If the queue can be flushed and the message has
  // at most 32 parts and no line breaks, it is written directly from the caller's memory, and only
  // the bytes that cannot be written at once are copied. *taken is false if the message was
  // rejected because the queue is full or memory allocation failed.
  Flush add_and_flush(int fd, std::span<const bh_str> parts, bool *taken) noexcept;

  void drop() noexcept;

 private:
  Flush write_direct(int fd, std::span<const bh_str> parts, std::size_t total) noexcept;
  bool fits(std::size_t total) const noexcept {
    return waiting() == 0 || waiting() + total + 1 <= bound_;
  }

  std::size_t bound_;
  Bytes queue_;
  std::size_t head_ = 0;  // bytes of queue_ already written
  std::uint64_t written_ = 0;
};

// Blocks SIGPIPE in this thread, so that a write to a closed descriptor fails with EPIPE. The
// signal dispositions of an embedding program do not change.
void block_pipe_signal() noexcept;

std::size_t total_size(std::span<const bh_str> parts) noexcept;

}  // namespace stdio_lines
