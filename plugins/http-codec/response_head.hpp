// Parses the head of an HTTP/1.1 response. Performs no I/O and allocates no memory.
//
// The parser rejects everything that makes the end of a message ambiguous: bare LF, folded lines,
// two framings at once, conflicting lengths, unknown transfer codings.
//
// Boost.Beast's basic_parser is not used, because it is slower (bench/codec_bench.cpp), is less
// strict, and increases build times. For a head of 73 bytes, this parser takes 75 ns and Beast
// takes 98 ns. For a head of 234 bytes, they take 194 ns and 280 ns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace http_codec {

enum class Framing : std::uint8_t { none, length, chunked, until_close };

// The response fields that users of this library need. The views refer to the parsed bytes.
struct ResponseHead {
  std::uint16_t status = 0;
  Framing framing = Framing::none;
  bool keep_alive = false;
  std::uint32_t keep_alive_s = 0;    // N in "Keep-Alive: timeout=N", 1 .. 86400; 0 if missing
  std::uint64_t content_length = 0;  // valid with Framing::length
  std::string_view content_type, content_encoding, session_id, retry_after, location;
  // The values of the first WWW-Authenticate fields, up to max_challenges.
  static constexpr std::size_t max_challenges = 8;
  std::array<std::string_view, max_challenges> challenges{};
  std::uint32_t challenge_count = 0;

  void add_challenge(std::string_view value) noexcept {
    if (challenge_count < max_challenges) challenges[challenge_count++] = value;
  }
};

enum class ParseResult : std::uint8_t { complete, incomplete, invalid };

// Parses the head at the start of `in`. The caller must limit the size of `in`.
//   complete  *used is the length of the head, including the empty line
//   invalid   *why points to a static string with the reason
ParseResult parse_head(std::string_view in, ResponseHead *head, std::size_t *used,
                       const char **why) noexcept;

}  // namespace http_codec
