// Encodes and decodes the state that policy-rules passes to the process that replaces it: numbers
// with 1 to 10 bytes (LEB128), and texts with their length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::rules {

class StateWriter {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void text(std::string_view value) {
    number(value.size());
    out_.append(value);
  }
  void append(const StateWriter &other) { out_ += other.out_; }
  std::size_t size() const noexcept { return out_.size(); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// The input may be hostile. After an error, all further values are 0 or empty.
class StateReader {
 public:
  explicit StateReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return fail();
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      const std::uint64_t bits = byte & 0x7Fu;
      if (shift == 63 && bits > 1) return fail();
      value |= bits << shift;
      if ((byte & 0x80u) == 0) return value;
    }
    return fail();
  }
  // The text is a view of the input.
  std::string_view text() {
    const std::uint64_t size = number();
    if (size > bytes_.size()) fail();
    const std::string_view value = bytes_.substr(0, failed_ ? 0 : static_cast<std::size_t>(size));
    bytes_.remove_prefix(value.size());
    return value;
  }
  // Reads the number of elements that follow. Each element takes at least one byte.
  std::size_t count() {
    const std::uint64_t n = number();
    return n > bytes_.size() ? static_cast<std::size_t>(fail()) : static_cast<std::size_t>(n);
  }
  // Reads an index below `size`.
  std::size_t index(std::size_t size) {
    const std::uint64_t i = number();
    return i >= size ? static_cast<std::size_t>(fail()) : static_cast<std::size_t>(i);
  }
  // Marks the input as malformed. Returns 0.
  std::uint64_t fail() noexcept {
    failed_ = true;
    bytes_ = {};
    return 0;
  }
  bool failed() const noexcept { return failed_; }
  // Returns true if no error occurred and all input was read.
  bool done() const noexcept { return !failed_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace bulkhead::rules
