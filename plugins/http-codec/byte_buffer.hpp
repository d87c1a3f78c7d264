// A byte buffer that is not zero-filled when it grows, and that frees its memory when it is
// cleared. Large bodies can be received directly into the buffer, and idle connections use no
// memory.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace http_codec {

class ByteBuffer {
 public:
  ByteBuffer() noexcept = default;
  ByteBuffer(ByteBuffer &&other) noexcept { swap(other); }
  ByteBuffer &operator=(ByteBuffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ByteBuffer(const ByteBuffer &) = delete;
  ByteBuffer &operator=(const ByteBuffer &) = delete;
  ~ByteBuffer() { std::free(data_); }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return capacity_; }
  char *data() noexcept { return data_; }
  std::string_view view() const noexcept { return {data_, size_}; }

  // Increases the capacity to at least `bytes`. If memory allocation fails, returns false and
  // changes nothing.
  bool reserve(std::size_t bytes) noexcept {
    if (bytes <= capacity_) return true;
    void *grown = std::realloc(data_, bytes);
    if (grown == nullptr) return false;
    data_ = static_cast<char *>(grown);
    capacity_ = bytes;
    return true;
  }

  // Appends bytes from outside this buffer. If memory allocation fails, returns false and changes
  // nothing.
  bool append(std::string_view bytes) noexcept {
    if (bytes.empty()) return true;
    if (size_ + bytes.size() > capacity_ &&
        !reserve(std::max(size_ + bytes.size(), capacity_ + capacity_ / 2))) {
      return false;
    }
    std::memcpy(data_ + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
    return true;
  }

  // room() returns memory that is reserved but not yet used. After writing n bytes at its start,
  // call filled(n).
  std::span<char> room() noexcept { return {data_ + size_, capacity_ - size_}; }
  void filled(std::size_t n) noexcept { size_ += n; }

  void truncate(std::size_t n) noexcept { size_ = std::min(size_, n); }

  // Drops the first n bytes.
  void drop_front(std::size_t n) noexcept {
    size_ -= n;
    if (size_ > 0) std::memmove(data_, data_ + n, size_);
  }

  void clear() noexcept {
    std::free(data_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

 private:
  void swap(ByteBuffer &other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  char *data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace http_codec
