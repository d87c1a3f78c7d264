// Writes the heads of requests and responses.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace http_codec {

inline constexpr std::string_view continue_head = "HTTP/1.1 100 Continue\r\n\r\n";

// Returns a status line such as "HTTP/1.1 200 OK\r\n". If the status is unknown, returns the line
// for 400 or 500.
std::string_view status_line(int status) noexcept;

// A string of at most N bytes in a fixed buffer. A piece that does not fit is omitted entirely,
// so the caller must limit the length of external text.
template <std::size_t N>
class HeadText {
 public:
  HeadText &operator<<(std::string_view s) noexcept {
    if (!s.empty() && s.size() <= N - size_) {
      std::memcpy(bytes_.data() + size_, s.data(), s.size());
      size_ += s.size();
    }
    return *this;
  }
  HeadText &number(std::uint64_t value, int base = 10) noexcept {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, base).ptr;
    return *this << std::string_view(digits.data(), end);
  }
  HeadText &field(std::string_view name, std::string_view value) noexcept {
    return *this << name << ": " << value << "\r\n";
  }
  HeadText &field(std::string_view name, std::uint64_t value) noexcept {
    return (*this << name << ": ").number(value) << "\r\n";
  }
  std::string_view view() const noexcept { return {bytes_.data(), size_}; }

 private:
  std::array<char, N> bytes_;
  std::size_t size_ = 0;
};

// These functions write request heads, whose length is not limited in advance.
inline void append_request_line(std::string &out, std::string_view method,
                                std::string_view target) {
  out.append(method).append(" ").append(target).append(" HTTP/1.1\r\n");
}
inline void append_field(std::string &out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace http_codec
