#include "http-codec/response_head.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "http-codec/text.hpp"

using namespace http_codec;

TEST_CASE("a typical head is parsed") {
  const std::string_view in =
      "HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\nDate: x\r\n"
      "Mcp-Session-Id:  abc \r\nContent-Length: 12\r\nKeep-Alive: timeout=5, max=3\r\n"
      "Connection: keep-alive\r\n\r\nBODY";
  ResponseHead head;
  std::size_t used = 0;
  const char *why = nullptr;
  REQUIRE(parse_head(in, &head, &used, &why) == ParseResult::complete);
  CHECK(used == in.size() - 4);
  CHECK(head.status == 200);
  CHECK(head.framing == Framing::length);
  CHECK(head.content_length == 12);
  CHECK(head.keep_alive);
  CHECK(head.keep_alive_s == 5);
  CHECK(head.session_id == "abc");
  CHECK(is_media_type(head.content_type, "application/json"));
  CHECK_FALSE(is_media_type("application/jsonx", "application/json"));
  for (std::size_t n = 0; n + 4 < in.size(); ++n) {
    CHECK(parse_head(in.substr(0, n), &head, &used, &why) == ParseResult::incomplete);
  }
}

TEST_CASE("framing determines the end of a body and whether the connection persists") {
  struct Case {
    const char *in;
    Framing framing;
    bool keep_alive;
  };
  const Case c = GENERATE(
      Case{"HTTP/1.1 204 No\r\n\r\n", Framing::none, true},
      Case{"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", Framing::none, true},
      Case{"HTTP/1.1 200 OK\r\n\r\n", Framing::until_close, false},
      Case{"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", Framing::chunked, true},
      Case{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", Framing::length,
           true},
      Case{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: x, Close\r\n\r\n", Framing::length,
           false},
      Case{"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", Framing::length, false},
      Case{"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n",
           Framing::length, true});
  ResponseHead head;
  std::size_t used = 0;
  const char *why = nullptr;
  REQUIRE(parse_head(c.in, &head, &used, &why) == ParseResult::complete);
  CHECK(head.framing == c.framing);
  CHECK(head.keep_alive == c.keep_alive);
}

TEST_CASE("ambiguous heads are rejected") {
  const std::string in = GENERATE(
      as<std::string>{}, "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n",
      "HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
      "HTTP/1.1 200 OK\r\n: x\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  ResponseHead head;
  std::size_t used = 0;
  const char *why = nullptr;
  CHECK(parse_head(in, &head, &used, &why) == ParseResult::invalid);
  CHECK(why != nullptr);
}
