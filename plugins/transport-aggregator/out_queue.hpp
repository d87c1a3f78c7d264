// Bytes on their way to a descriptor that may not take them at once. Thread: the reactor's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace transport_aggregator {

class OutQueue {
 public:
  enum class Flush : std::uint8_t {
    done,     // nothing waits
    blocked,  // the rest waits until the descriptor is writable
    broken    // errno says why; nothing will ever be written again
  };

  // Where the next bytes are appended; the caller keeps its bound by waiting().
  std::string &bytes() noexcept { return bytes_; }
  std::size_t waiting() const noexcept { return bytes_.size() - head_; }

  // Writes what waits.
  Flush flush(int fd);
  void drop() noexcept;

 private:
  std::string bytes_;
  std::size_t head_ = 0;  // of bytes_, already written
};

}  // namespace transport_aggregator
