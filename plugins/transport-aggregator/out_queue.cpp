#include "transport-aggregator/out_queue.hpp"

#include <unistd.h>

#include <cerrno>

namespace transport_aggregator {

OutQueue::Flush OutQueue::flush(int fd) {
  while (waiting() > 0) {
    const ssize_t n = ::write(fd, bytes_.data() + head_, waiting());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      // Moves the unwritten bytes to the front only if more than half of the queue has been
      // written. This amortizes the cost of moving.
      if (head_ > bytes_.size() / 2) {
        bytes_.erase(0, head_);
        head_ = 0;
      }
      return Flush::blocked;
    }
    if (n < 0) return Flush::broken;
    head_ += static_cast<std::size_t>(n);
  }
  drop();
  return Flush::done;
}

void OutQueue::drop() noexcept {
  constexpr std::size_t kept_capacity = 256u << 10;
  head_ = 0;
  bytes_.clear();
  if (bytes_.capacity() > kept_capacity) bytes_ = std::string();
}

}  // namespace transport_aggregator
