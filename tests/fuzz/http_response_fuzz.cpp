// Fuzzes the parser of HTTP/1.1 responses. The result for a head must not depend on what follows
// it, its views must be inside the input, and a chunked body must not depend on how the input is
// split. The first byte of the input selects how it is split.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "failure.hpp"
#include "http-codec/chunk_decoder.hpp"
#include "http-codec/response_reader.hpp"
#include "peek.hpp"
#include "url.hpp"

namespace {

using namespace connector_http;
using namespace http_codec;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Decoded {
  std::string body;
  ChunkDecoder::Result end = ChunkDecoder::Result::more;
  friend bool operator==(const Decoded &, const Decoded &) = default;
};

Decoded decode(std::string_view in, std::size_t step) {
  ChunkDecoder decoder({.trailer_bytes = 4096, .extension_bytes = 4096});
  Decoded out;
  while (!in.empty() && out.end == ChunkDecoder::Result::more) {
    const std::string part(in.substr(0, step));
    in.remove_prefix(part.size());
    std::string_view left = part, piece;
    while ((out.end = decoder.next(left, 1u << 30, piece)) == ChunkDecoder::Result::data) {
      out.body.append(piece);
    }
  }
  return out;
}

struct Response {
  std::string session, body;
  int status = 0;
  std::size_t rest = 0;
  ResponseReader::Result end = ResponseReader::Result::more;
  friend bool operator==(const Response &, const Response &) = default;
};

Response read(std::string_view in, std::size_t step) {
  ResponseReader reader(512);
  Response out;
  std::string part;
  while (!in.empty() && out.end == ResponseReader::Result::more) {
    part.assign(in.substr(0, step));
    in.remove_prefix(part.size());
    std::string_view left = part, piece;
    for (;;) {
      out.end = reader.next(left, piece);
      if (out.end == ResponseReader::Result::head) {
        out.status = reader.head().status;
        out.session = reader.head().session_id;
      } else if (out.end == ResponseReader::Result::body) {
        require(!piece.empty());
        out.body.append(piece);
      } else {
        break;
      }
    }
    out.rest = left.size() + in.size();
  }
  return out;
}

bool refused(const Response &response) {
  return response.end == ResponseReader::Result::invalid ||
         response.end == ResponseReader::Result::head_too_large;
}

// If the head arrives in pieces, it is parsed once it is complete. An invalid but incomplete head
// is therefore not rejected yet.
bool same(const Response &whole, const Response &pieces) {
  if (!refused(whole)) return whole == pieces;
  return refused(pieces) || (pieces.end == ResponseReader::Result::more && pieces.status == 0);
}

void check_head(std::string_view in) {
  ResponseHead head, shorter;
  std::size_t used = 0, other = 0;
  const char *why = nullptr;
  const ParseResult result = parse_head(in, &head, &used, &why);
  require(result != ParseResult::invalid || why != nullptr);
  if (result != ParseResult::complete) return;
  require(used >= 4 && used <= in.size() && in.substr(used - 4, 4) == "\r\n\r\n");
  require(head.status >= 100 && head.status <= 999);
  for (std::string_view v :
       {head.content_type, head.session_id, head.challenges[0], head.location}) {
    require(v.empty() || (v.data() >= in.data() && v.data() + v.size() <= in.data() + used));
    require(v.find_first_of("\r\n") == std::string_view::npos);
  }
  require(parse_head(in.substr(0, used), &shorter, &other, &why) == ParseResult::complete);
  require(parse_head(in.substr(0, used - 1), &shorter, &other, &why) == ParseResult::incomplete);
  const Url base{false, "h", 80, "/a/b"};
  const HttpFailure failure = describe(head, base);
  const bh_error error = to_error(failure, true);
  require(error.code < 0 || head.status < 300);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view in(reinterpret_cast<const char *>(data) + 1, size - 1);
  check_head(in);
  const Decoded whole = decode(in, in.size());
  require(whole == decode(in, 1));
  require(whole == decode(in, std::max<std::size_t>(data[0], 1)));
  const Response response = read(in, in.size());
  require(same(response, read(in, 1)));
  require(same(response, read(in, std::max<std::size_t>(data[0], 1))));
  is_response(in);
  answers_a_request(in);
  const Url base{false, "h", 80, "/a/b"};
  if (const auto url = resolve_url(base, in.substr(0, 4096), nullptr)) {
    require(url->target.starts_with("/") && !url->host.empty());
    require(url->target.find_first_of("\r\n ") == std::string::npos);
  }
  return 0;
}
