// Queues output for a non-blocking descriptor. Runs on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace transport_aggregator {

class OutQueue {
 public:
  enum class Flush : std::uint8_t {
    done,     // the queue is empty
    blocked,  // the rest stays queued until the descriptor is writable
    broken    // errno contains the reason; the descriptor must not be used again
  };

  // Returns the buffer to which output is appended. The caller must limit waiting().
  std::string &bytes() noexcept { return bytes_; }
  std::size_t waiting() const noexcept { return bytes_.size() - head_; }

  Flush flush(int fd);
  void drop() noexcept;

 private:
  std::string bytes_;
  std::size_t head_ = 0;  // bytes of bytes_ already written
};

}  // namespace transport_aggregator
