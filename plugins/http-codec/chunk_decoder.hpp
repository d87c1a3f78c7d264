// The chunked transfer coding, decoded byte by byte as it arrives. Strict: sizes are plain hex
// digits, line ends are CR LF. Extensions are refused: no client sends them, and parsers that read
// them differently are one way of smuggling. Trailers are checked and ignored.
#pragma once

#include <cstdint>
#include <string_view>

#include "http-codec/byte_buffer.hpp"

namespace http_codec {

class ChunkDecoder {
 public:
  enum class Result : std::uint8_t { more, done, malformed, too_large, no_memory };

  // body_limit: decoded bytes. trailer_limit: bytes of all trailers.
  ChunkDecoder(std::uint64_t body_limit, std::uint32_t trailer_limit) noexcept
      : body_limit_(body_limit), trailer_left_(trailer_limit) {}

  // Removes from the front of `in` what belongs to the body and appends the data to `out`.
  Result feed(std::string_view &in, ByteBuffer &out) noexcept;

 private:
  enum class State : std::uint8_t {
    size,
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
  bool spend() noexcept { return trailer_left_-- > 0; }

  std::uint64_t body_limit_;
  std::uint64_t size_ = 0;  // of the chunk being read; then what is left of it
  std::uint32_t trailer_left_;
  std::uint8_t digits_ = 0;
  State state_ = State::size;
};

}  // namespace http_codec
