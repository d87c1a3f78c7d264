// A growable byte buffer whose memory is not zero-filled, so messages can be read directly into it.
// When a large buffer grows, realloc() remaps its pages instead of copying them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace stdio_lines {

class Bytes {
 public:
  Bytes() noexcept = default;
  Bytes(Bytes &&other) noexcept
      : p_(std::exchange(other.p_, nullptr)),
        n_(std::exchange(other.n_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Bytes &operator=(Bytes &&other) noexcept {
    std::swap(p_, other.p_);
    std::swap(n_, other.n_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Bytes() { std::free(p_); }

  char *data() noexcept { return p_; }
  std::size_t size() const noexcept { return n_; }
  bool empty() const noexcept { return n_ == 0; }
  std::size_t capacity() const noexcept { return capacity_; }
  std::string_view view() const noexcept { return {p_, n_}; }

  // tail() returns a pointer to room() writable bytes. After writing n bytes to them, call
  // added(n).
  char *tail() noexcept { return p_ + n_; }
  std::size_t room() const noexcept { return capacity_ - n_; }
  void added(std::size_t n) noexcept { n_ += n; }

  // Reserves room for `more` bytes. If memory allocation fails, returns false and changes nothing.
  bool reserve(std::size_t more) noexcept {
    if (room() >= more) return true;
    if (more > SIZE_MAX - n_) return false;
    std::size_t wanted = capacity_ < 512 ? 1024 : capacity_ * 2;
    if (wanted < n_ + more) wanted = n_ + more;
    void *grown = std::realloc(p_, wanted);
    if (grown == nullptr) return false;
    p_ = static_cast<char *>(grown);
    capacity_ = wanted;
    return true;
  }
  bool append(std::string_view text) noexcept {
    if (!reserve(text.size())) return false;
    if (!text.empty()) std::memcpy(tail(), text.data(), text.size());
    n_ += text.size();
    return true;
  }
  void clear() noexcept { n_ = 0; }
  void drop_front(std::size_t n) noexcept {
    n_ -= n;
    std::memmove(p_, p_ + n, n_);
  }
  void release() noexcept {
    std::free(std::exchange(p_, nullptr));
    n_ = capacity_ = 0;
  }

 private:
  char *p_ = nullptr;
  std::size_t n_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace stdio_lines
