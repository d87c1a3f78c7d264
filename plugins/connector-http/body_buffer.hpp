// Implements a growing byte buffer that is not zero-filled. SpareBuffer keeps one buffer for the
// next large response, because getting new pages from the kernel costs more than receiving the
// data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace connector_http {

class BodyBuffer {
 public:
  BodyBuffer() noexcept = default;
  BodyBuffer(BodyBuffer &&o) noexcept
      : data_(std::exchange(o.data_, nullptr)),
        size_(std::exchange(o.size_, 0)),
        capacity_(std::exchange(o.capacity_, 0)) {}
  BodyBuffer &operator=(BodyBuffer &&o) noexcept {
    if (this == &o) return *this;
    std::free(data_);
    data_ = std::exchange(o.data_, nullptr);
    size_ = std::exchange(o.size_, 0);
    capacity_ = std::exchange(o.capacity_, 0);
    return *this;
  }
  ~BodyBuffer() { std::free(data_); }

  std::string_view view() const noexcept { return {data_, size_}; }
  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return capacity_; }
  void clear() noexcept { size_ = 0; }

  // Returns false if the memory cannot be allocated.
  bool reserve(std::size_t bytes) noexcept {
    if (bytes <= capacity_) return true;
    auto *data = static_cast<char *>(std::realloc(data_, bytes));
    if (data == nullptr) return false;
    data_ = data;
    capacity_ = bytes;
    return true;
  }
  bool append(std::string_view s) noexcept {
    if (s.empty()) return true;
    // The bytes were received directly into this buffer, so they need not be copied.
    if (s.data() == data_ + size_ && s.size() <= capacity_ - size_) {
      size_ += s.size();
      return true;
    }
    if (s.size() > capacity_ - size_ && !reserve(std::max(capacity_ * 2, size_ + s.size()))) {
      return false;
    }
    std::memcpy(data_ + size_, s.data(), s.size());
    size_ += s.size();
    return true;
  }
  std::span<char> room() noexcept { return {data_ + size_, capacity_ - size_}; }

 private:
  char *data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

class SpareBuffer {
 public:
  static constexpr std::size_t kept_bytes_max = 4 << 20;

  BodyBuffer take() noexcept { return std::move(spare_); }
  void give_back(BodyBuffer &&buffer) noexcept {
    if (buffer.capacity() > kept_bytes_max || buffer.capacity() <= spare_.capacity()) return;
    buffer.clear();
    spare_ = std::move(buffer);
  }
  void drop() noexcept { spare_ = BodyBuffer{}; }

 private:
  BodyBuffer spare_;
};

}  // namespace connector_http
