// Decodes the chunked transfer coding incrementally and without copying: pieces of the body are
// returned as views of the input.
//
// The decoder is strict: sizes must be plain hex digits, lines must end with CR LF, and trailers
// must be valid fields (but are ignored). Chunk extensions in requests are rejected, because no
// client sends them, and because parsers that treat them differently make request smuggling
// possible. Chunk extensions in responses are skipped, because some servers send them.
#pragma once

#include <cstdint>
#include <string_view>

namespace http_codec {

struct ChunkLimits {
  std::uint32_t trailer_bytes = 0;    // limit for all trailers together
  std::uint32_t extension_bytes = 0;  // limit for the extension of one chunk; 0 rejects extensions
};

class ChunkDecoder {
 public:
  enum class Result : std::uint8_t { more, data, done, malformed, too_large };

  explicit ChunkDecoder(const ChunkLimits &limits) noexcept
      : limits_(limits), trailer_left_(limits.trailer_bytes) {}

  // Consumes bytes from the front of `in`.
  //   data       `piece` is the next part of the body
  //   more       all of `in` has been consumed
  //   too_large  the next chunk has more than `size_limit` bytes
  Result next(std::string_view &in, std::uint64_t size_limit, std::string_view &piece) noexcept;

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
  bool take_extension(char c) noexcept;
  bool spend() noexcept { return trailer_left_-- > 0; }

  ChunkLimits limits_;
  std::uint32_t trailer_left_;
  std::uint32_t line_bytes_ = 0;  // digits of the size, then bytes of the extension
  std::uint64_t size_ = 0;        // size of the current chunk, then its remaining bytes
  State state_ = State::size;
};

}  // namespace http_codec
