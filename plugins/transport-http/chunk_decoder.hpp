// The chunked transfer coding, decoded byte by byte as it arrives. Strict: sizes are plain hex
// digits, line ends are CR LF, extensions and trailers are checked and ignored.
#pragma once

#include <cstdint>
#include <string_view>

#include "byte_buffer.hpp"

namespace transport_http {

class ChunkDecoder {
 public:
  enum class Result : std::uint8_t { more, done, malformed, too_large, no_memory };

  // body_limit: decoded bytes. overhead_limit: bytes of extensions and trailers together.
  ChunkDecoder(std::uint64_t body_limit, std::uint32_t overhead_limit) noexcept
      : body_limit_(body_limit), overhead_left_(overhead_limit) {}

  // Removes from the front of `in` what belongs to the body and appends the data to `out`.
  Result feed(std::string_view &in, ByteBuffer &out) noexcept;

 private:
  enum class State : std::uint8_t {
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_start,
    trailer_name,
    trailer_value,
    trailer_lf,
    last_lf,
    done
  };

  bool step(char c) noexcept;
  bool take_size(char c) noexcept;
  bool spend() noexcept { return overhead_left_-- > 0; }

  std::uint64_t body_limit_;
  std::uint64_t size_ = 0;  // of the chunk being read; then what is left of it
  std::uint32_t overhead_left_;
  std::uint8_t digits_ = 0;
  State state_ = State::size;
};

}  // namespace transport_http
