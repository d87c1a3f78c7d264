// An output queue for a descriptor that may block. Runs on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace transport_aggregator {

class OutQueue {
 public:
  enum class Flush : std::uint8_t {
    done,     // the queue is empty
    blocked,  // unwritten bytes stay queued until the descriptor is writable
    broken    // errno contains the reason; the descriptor must not be used again
  };

  // Returns the buffer to append to. The caller enforces its limit, using waiting().
  std::string &bytes() noexcept { return bytes_; }
  std::size_t waiting() const noexcept { return bytes_.size() - head_; }

  Flush flush(int fd);
  void drop() noexcept;

 private:
  std::string bytes_;
  std::size_t head_ = 0;  // bytes of bytes_ that have been written
};

}  // namespace transport_aggregator
