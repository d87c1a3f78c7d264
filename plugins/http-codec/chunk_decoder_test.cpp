#include "http-codec/chunk_decoder.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

using namespace http_codec;
using Result = ChunkDecoder::Result;

namespace {

constexpr ChunkLimits of_requests{.trailer_bytes = 16};
constexpr ChunkLimits of_responses{.trailer_bytes = 16, .extension_bytes = 8};

struct Decoded {
  std::string body;
  Result end = Result::more;
  std::size_t rest = 0;
  bool operator==(const Decoded &) const = default;
};

Decoded decode_in(std::size_t step, std::string_view in, const ChunkLimits &limits) {
  ChunkDecoder decoder(limits);
  Decoded out;
  while (!in.empty() && out.end == Result::more) {
    const std::string part(in.substr(0, step));  // freed after each piece
    in.remove_prefix(part.size());
    std::string_view left = part, piece;
    while ((out.end = decoder.next(left, 100, piece)) == Result::data) out.body.append(piece);
    out.rest = left.size() + in.size();
  }
  return out;
}

Decoded decode(std::string_view in, const ChunkLimits &limits) {
  const Decoded whole = decode_in(in.size(), in, limits);
  for (const std::size_t step : {1u, 2u, 3u, 7u}) CHECK(decode_in(step, in, limits) == whole);
  return whole;
}

}  // namespace

TEST_CASE("chunks are joined, however the input is split, and following bytes are kept") {
  for (const ChunkLimits &limits : {of_requests, of_responses}) {
    CHECK(decode("4\r\nWiki\r\nA\r\npedia in\r\n\r\n0\r\nT: u\r\n\r\nnext", limits) ==
          Decoded{"Wikipedia in\r\n", Result::done, 4});
    CHECK(decode("000\r\n\r\n", limits) == Decoded{"", Result::done, 0});
    CHECK(decode("4\r\nWi", limits).body == "Wi");
  }
}

TEST_CASE("malformed chunks are rejected") {
  for (const ChunkLimits &limits : {of_requests, of_responses}) {
    for (const char *bad : {"x\r\n", "\r\n", "4\nWiki", "4\r\nWikiX", "4\r\nWiki\r\r", "0\r\n\rX",
                            "-1\r\n", " 4\r\n", "0x1\r\n", "0000000000000000\r\n", "0\r\n T: u\r\n",
                            "0\r\nT\r\n", "0\r\nT: \x01\r\n", "0\r\nT: more than 16 bytes\r\n"}) {
      CAPTURE(bad);
      CHECK(decode(bad, limits).end == Result::malformed);
    }
  }
}

TEST_CASE("extensions are skipped if allowed") {
  const Decoded body{"a", Result::done, 0};
  for (const char *extended : {"1;x=\"y\"\r\na\r\n0\r\n\r\n", "1 \r\na\r\n0;x\r\n\r\n",
                               "1\t;xxxxxx\r\na\r\n0;yyyyyyy\r\n\r\n"}) {
    CAPTURE(extended);
    CHECK(decode(extended, of_responses) == body);
    CHECK(decode(extended, of_requests).end == Result::malformed);
  }
  CHECK(decode("1;xxxxxxxx\r\na\r\n0\r\n\r\n", of_responses).end == Result::malformed);
  CHECK(decode("1;\x01\r\na\r\n0\r\n\r\n", of_responses).end == Result::malformed);
}

TEST_CASE("a chunk above the limit is rejected before its data") {
  CHECK(decode("64\r\n", of_requests).end == Result::more);
  CHECK(decode("65\r\n", of_requests).end == Result::too_large);
}
