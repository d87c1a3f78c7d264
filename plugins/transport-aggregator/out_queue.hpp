// An output queue for a descriptor that may block. Used on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace transport_aggregator {

class OutQueue {
 public:
  enum class Flush : std::uint8_t {
    done,     // the queue is empty
    blocked,  // the rest is queued until the descriptor is writable
    broken    // errno has the reason; no more data may be written to the descriptor
  };

  // Returns the buffer to append to; the caller enforces its limit with waiting().
  std::string &bytes() noexcept { return bytes_; }
  std::size_t waiting() const noexcept { return bytes_.size() - head_; }

  // Writes the queue.
  Flush flush(int fd);
  void drop() noexcept;

 private:
  std::string bytes_;
  std::size_t head_ = 0;  // bytes of bytes_ that have been written
};

}  // namespace transport_aggregator
