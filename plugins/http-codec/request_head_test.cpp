// Tests which unusual or ambiguous request heads are accepted, and with which status the others are
// rejected.
#include <catch2/catch.hpp>
#include <string>

#include "http-codec/request_head.hpp"

using namespace http_codec;

namespace {

struct Head {
  int status;  // 0 if accepted
  const char *text;
};

constexpr Head heads[] = {
    {0, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {0, "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {0, "GET / HTTP/1.0\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n\r\n"},
    {0, "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},
    {400, "GET / HTTP/1.1\nHost: a\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\n\n"},
    {400, "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"},
    {400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
    {400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET /  HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, " GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {505, "GET / HTTP/1.2\r\nHost: a\r\n\r\n"},
    {505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
    {400, "GET / HTTP/11\r\nHost: a\r\n\r\n"},
    {400, "GET / http/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET / HTTP/1.1x\r\nHost: a\r\n\r\n"},
    {400, "GET /\r\nHost: a\r\n\r\n"},
    {400, "GET\r\nHost: a\r\n\r\n"},
    {400, "G(T / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {0, "BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n"},
    {0, "get / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET x HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET * HTTP/1.1\r\nHost: a\r\n\r\n"},
    {0, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
    {0, "GET http://a/x?y HTTP/1.1\r\nHost: a\r\n\r\n"},
    {0, "GET HTTP://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET http://a HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {0, "GET /a?b?c#d HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET /\x7F HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET /\xC3\xA9 HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tc\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\nX\t: b\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"},
    {0, "GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n"},
    {0, "GET / HTTP/1.1\r\nHost: a\r\nX:b\tc\r\n\r\n"},
    {0, "GET / HTTP/1.1\r\nHost: a\r\nX: \xE9\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\nX: \x0B\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\nX: \x1F\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\nX: \x7F\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\nX\x01: b\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\nX[]: b\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\nHost: a\r\n\xC3\xA9: b\r\n\r\n"},
    {0, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"},
    {0, "POST / HTTP/1.1\r\nHost: a\r\nCONTENT-length:5\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n"},
    {0, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 000000000000000005\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0000000000000000005\r\n\r\n"},
    {0, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {0, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked \r\n\r\n"},
    {400,
     "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
     "chunked\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;x\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {400, "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {0, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"},
    {0, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n"},
    {417, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n\r\n"},
    {400,
     "POST / HTTP/1.1\r\nHost: a\r\nExpect: \x11"
     "0-continue\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nOrigin: x\r\nOrigin: x\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: x\r\nauthorization: y\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: x\r\nContent-Type: x\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nMcp-Session-Id: x\r\nMCP-SESSION-ID: x\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: none\r\n\r\n"},
    {0, "POST / HTTP/1.1\r\nHost: a\r\nAccept: x\r\nAccept: y\r\nX: 1\r\nX: 2\r\n\r\n"},
    {505, "PRI * HTTP/2.0\r\n\r\n"},
    {400, "\x16\x03\x01"},
    {400, "\"GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {431,
     "GET / HTTP/1.1\r\nHost: a\r\nX: "
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
};

// Returns the status with which a head that arrives in pieces of `step` bytes is rejected, or 0 if
// it is accepted.
int status_of(std::string_view text, std::size_t step, HeadParser &parser) {
  for (std::size_t n = step;; n += step) {
    const auto result = parser.advance(text.substr(0, n));
    if (result == HeadParser::Result::done) return 0;
    if (result == HeadParser::Result::error) return parser.status();
    if (n >= text.size()) return -1;
  }
}

}  // namespace

TEST_CASE("heads are accepted or rejected with the expected status, however they are split") {
  for (const Head &head : heads) {
    for (const std::size_t step : {1000u, 1u, 2u, 7u}) {
      CAPTURE(head.text, step);
      HeadParser parser(128);
      CHECK(status_of(head.text, step, parser) == head.status);
      CHECK((parser.why() == nullptr) == (head.status == 0));
    }
  }
}

TEST_CASE("Host is required only if configured") {
  HeadParser parser(128, false);
  CHECK(parser.advance("GET / HTTP/1.1\r\n\r\n") == HeadParser::Result::done);
  HeadParser other(128, false);
  CHECK(other.advance("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n") == HeadParser::Result::error);
}
