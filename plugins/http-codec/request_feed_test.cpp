#include "http-codec/request_feed.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace http_codec;
using Result = RequestFeed::Result;
using namespace std::string_literals;

namespace {

const FeedLimits small{.head_bytes = 512, .body_bytes = 64};

struct Outcome {
  std::vector<std::string> bodies;
  int status = 0;
  bool operator==(const Outcome &) const = default;
};

// Feeds the text in pieces of `step` bytes, or in one piece if `step` is 0.
Outcome run(std::string_view text, std::size_t step = 0, const FeedLimits &limits = small) {
  RequestFeed feed(limits);
  Outcome out;
  if (step == 0) step = std::max<std::size_t>(text.size(), 1);
  for (std::size_t at = 0; at < text.size(); at += step) {
    // Each piece is a separate copy, so the sanitizer detects views that are used after the piece
    // is gone.
    const std::string piece(text.substr(at, step));
    std::string_view in = piece;
    while (!in.empty()) {
      const Result result = feed.feed(in);
      if (result == Result::error) {
        out.status = feed.status();
        return out;
      }
      if (result == Result::more) break;
      out.bodies.emplace_back(feed.body());
      feed.next();
    }
  }
  return out;
}

std::string post(std::string_view fields, std::string_view body = {}) {
  return "POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) + "\r\n" +
         std::string(body);
}

}  // namespace

TEST_CASE("a request is returned in place, with its fields") {
  const std::string text =
      "POST /mcp?a=b HTTP/1.1\r\nhOST: localhost:8808\r\nMcp-Session-Id:\t abc \r\n"
      "Accept: text/event-stream; q=1\r\naccept: Application/JSON\r\nX-Other: \xC3\xA9\r\n"
      "MCP-Protocol-Version: 2025-11-25\r\nContent-Type: application/json\r\n"
      "Content-Length: 3\r\n\r\nabcNEXT";
  RequestFeed feed(small);
  std::string_view in = text;
  REQUIRE(feed.feed(in) == Result::request);
  CHECK(in == "NEXT");
  CHECK(feed.body().data() == text.data() + text.size() - 7);
  CHECK(feed.body() == "abc");
  CHECK(feed.head().method == Method::post);
  CHECK(feed.text(feed.head().path) == "/mcp");
  CHECK(feed.text(feed.head().query) == "a=b");
  CHECK(feed.text(Field::host) == "localhost:8808");
  CHECK(feed.text(Field::session) == "abc");
  CHECK(feed.text(Field::revision) == "2025-11-25");
  CHECK(feed.head().accepts_json);
  CHECK(feed.head().accepts_events);
  CHECK(feed.head().persistent());
  CHECK(is_json(feed));
  CHECK_FALSE(feed.head().has(Field::origin));
}

TEST_CASE("pipelined requests are returned one by one, however the bytes are split") {
  const std::string text =
      post("Content-Length: 2\r\n", "ab") +
      post("Transfer-Encoding: chunked\r\n", "3\r\ncde\r\nA\r\n0123456789\r\n0\r\nX-T: v\r\n\r\n") +
      "\r\n" + post("") + "GET / HTTP/1.0\r\n\r\n";
  const Outcome whole = run(text);
  CHECK(whole.status == 0);
  CHECK(whole.bodies == std::vector<std::string>{"ab", "cde0123456789", "", ""});
  for (std::size_t step = 1; step < text.size(); ++step) {
    CAPTURE(step);
    REQUIRE(run(text, step) == whole);
  }
}

TEST_CASE("a body of known length is received directly") {
  const FeedLimits limits{.head_bytes = 512, .body_bytes = 1u << 20};
  RequestFeed feed(limits);
  const std::string head = post("Content-Length: 300000\r\n", "start");
  std::string_view in = head;
  REQUIRE(feed.feed(in) == Result::more);
  CHECK(feed.head_known());
  CHECK(feed.started());
  REQUIRE(feed.room().size() == 300000 - 5);
  std::fill_n(feed.room().data(), 299995, 'x');
  CHECK(feed.filled(100000) == Result::more);
  REQUIRE(feed.filled(199995) == Result::request);
  CHECK(feed.body() == "start" + std::string(299995, 'x'));
  CHECK(feed.text(Field::host) == "localhost");
  feed.next();
  CHECK_FALSE(feed.started());
  CHECK(feed.room().empty());
}

TEST_CASE("ambiguous requests are rejected") {
  struct Case {
    const char *why;
    std::string text;
    int status = 400;
  };
  const std::string get = "GET /mcp HTTP/1.1\r\n";
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  std::string many_fields;
  for (int i = 0; i < 100; ++i) many_fields += "X-Y: zzz\r\n";
  const std::vector<Case> cases{
      {"length and coding", post("Content-Length: 5\r\n" + chunked, "0\r\n\r\n")},
      {"coding and length", post(chunked + "Content-Length: 5\r\n", "0\r\n\r\n")},
      {"two lengths that differ", post("Content-Length: 5\r\nContent-Length: 6\r\n", "abcdef")},
      {"two equal lengths", post("Content-Length: 1\r\nContent-Length: 1\r\n", "a")},
      {"list of lengths", post("Content-Length: 5, 5\r\n", "abcde")},
      {"signed length", post("Content-Length: +5\r\n", "abcde")},
      {"negative length", post("Content-Length: -5\r\n", "abcde")},
      {"hex length", post("Content-Length: 0x5\r\n", "abcde")},
      {"length with a blank", post("Content-Length: 1 0\r\n", "abcde")},
      {"empty length", post("Content-Length:\r\n")},
      {"huge length", post("Content-Length: 99999999999999999999\r\n")},
      {"folded line", post("X-A: b\r\n c\r\n")},
      {"folded line, tab", post("X-A: b\r\n\tContent-Length: 5\r\n")},
      {"blank before the first field", get + " Host: localhost\r\n\r\n"},
      {"bare LF after a field", get + "Host: localhost\nX: y\r\n\r\n"},
      {"bare LF after the request line", "GET /mcp HTTP/1.1\nHost: localhost\r\n\r\n"},
      {"bare LF at the end", get + "Host: localhost\r\n\n"},
      {"CR in a value", get + "Host: localhost\r\nX: a\rb\r\n\r\n"},
      {"space before the colon", post("Content-Length : 5\r\n", "abcde")},
      {"tab before the colon", post("Transfer-Encoding\t: chunked\r\n")},
      {"no colon", post("Content-Length\r\n")},
      {"empty name", post(": x\r\n")},
      {"coding gzip", post("Transfer-Encoding: gzip, chunked\r\n")},
      {"coding identity", post("Transfer-Encoding: identity\r\n")},
      {"coding with a vertical tab", post("Transfer-Encoding: \vchunked\r\n")},
      {"coding quoted", post("Transfer-Encoding: \"chunked\"\r\n")},
      {"two codings", post(chunked + chunked, "0\r\n\r\n")},
      {"coding in 1.0", "POST / HTTP/1.0\r\nHost: a\r\n" + chunked + "\r\n0\r\n\r\n"},
      {"NUL in a value", post("X: a\0b\r\n"s)},
      {"NUL in a name", post("X\0Y: a\r\n"s)},
      {"NUL in the target", "GET /m\0cp HTTP/1.1\r\nHost: a\r\n\r\n"s},
      {"two hosts", get + "Host: a\r\nHost: b\r\n\r\n"},
      {"no host", get + "\r\n"},
      {"two session ids", post("Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\n")},
      {"no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"text after the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
      {"lower-case version", "GET / http/1.1\r\nHost: a\r\n\r\n"},
      {"relative target", "GET mcp HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"target *", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"target with UTF-8", "GET /\xC3\xA9 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"two empty lines first", "\r\n\r\n" + get + "Host: a\r\n\r\n"},
      {"TLS", "\x16\x03\x01\x02\x01\x01"s},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\n", 505},
      {"chunk size signed", post(chunked, "+1\r\na\r\n0\r\n\r\n")},
      {"chunk size 0x", post(chunked, "0x1\r\na\r\n0\r\n\r\n")},
      {"chunk size with blank", post(chunked, "1 \r\na\r\n0\r\n\r\n")},
      {"chunk size empty", post(chunked, "\r\na\r\n0\r\n\r\n")},
      {"chunk size overflow", post(chunked, "10000000000000000\r\na\r\n0\r\n\r\n")},
      {"chunk line ends in LF", post(chunked, "1\na\r\n0\r\n\r\n")},
      {"chunk data too long", post(chunked, "1\r\nab\r\n0\r\n\r\n")},
      {"chunk ends in LF", post(chunked, "1\r\na\n0\r\n\r\n")},
      {"chunk extension", post(chunked, "1;x=y\r\na\r\n0\r\n\r\n")},
      {"chunk extension, empty", post(chunked, "1;\r\na\r\n0\r\n\r\n")},
      {"NUL in a trailer", post(chunked, "0\r\nX: \0\r\n\r\n"s)},
      {"folded trailer", post(chunked, "0\r\nX: a\r\n b\r\n\r\n")},
      {"endless trailers", post(chunked, "0\r\nX: " + std::string(600, 'x') + "\r\n\r\n")},
      {"unknown expectation", post("Expect: tea\r\n"), 417},
      {"body too large", post("Content-Length: 65\r\n"), 413},
      {"chunk too large", post(chunked, "41\r\n"), 413},
      {"chunks too large", post(chunked, "40\r\n" + std::string(64, 'a') + "\r\n1\r\n"), 413},
      {"head too large", get + "X: " + std::string(600, 'a'), 431},
      {"many fields", get + many_fields, 431},
  };
  for (const Case &c : cases) {
    CAPTURE(c.why);
    const Outcome whole = run(c.text);
    CHECK(whole.status == c.status);
    CHECK(whole.bodies.empty());
    for (const std::size_t step : {1u, 2u, 3u, 7u, 61u}) CHECK(run(c.text, step) == whole);
  }
}

TEST_CASE("common variations are accepted") {
  const std::vector<std::string> good{
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
      "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET / HTTP/1.0\r\n\r\n",
      "GET http://localhost:1/mcp HTTP/1.1\r\nHost: a\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
      "BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET / HTTP/1.1\r\nHost:\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX-Tab: a\tb\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
      post("transfer-encoding: CHUNKED\r\n", "0\r\n\r\n"),
      post("Transfer-Encoding: chunked\r\n", "0000\r\n\r\n"),
  };
  for (const std::string &text : good) {
    CAPTURE(text);
    CHECK(run(text) == Outcome{{""}, 0});
    CHECK(run(text, 1) == Outcome{{""}, 0});
  }
}

TEST_CASE("Connection determines whether another request may follow") {
  const auto persistent = [](std::string text) {
    RequestFeed feed(small);
    std::string_view in = text;
    REQUIRE(feed.feed(in) == Result::request);
    return feed.head().persistent();
  };
  CHECK(persistent("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  CHECK_FALSE(persistent("GET / HTTP/1.1\r\nHost: a\r\nConnection: TE, Close\r\n\r\n"));
  CHECK_FALSE(persistent("GET / HTTP/1.0\r\n\r\n"));
  CHECK(persistent("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
}

TEST_CASE("a head of exactly the maximum size is accepted, and a larger head is rejected") {
  std::string text = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  text += std::string(512 - text.size() - 4, 'x') + "\r\n\r\n";
  REQUIRE(text.size() == 512);
  CHECK(run(text).status == 0);
  CHECK(run(text, 1).status == 0);
  text.insert(text.find("xx"), 1, 'x');
  CHECK(run(text).status == 431);
  CHECK(run(text, 1).status == 431);
}
