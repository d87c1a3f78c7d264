#include "http-codec/response_reader.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace http_codec;
using Result = ResponseReader::Result;

namespace {

struct Read {
  int status = 0;
  std::string session, body, why;
  Result end = Result::more;
  bool until_close = false;
  std::size_t rest = 0;
  bool operator==(const Read &) const = default;
};

Read read_in(std::size_t step, std::string_view in, ResponseReader &reader) {
  Read out;
  std::string part;
  while (!in.empty() && out.end == Result::more) {
    part.assign(in.substr(0, step));  // overwritten for each piece; views must not outlive it
    in.remove_prefix(part.size());
    std::string_view left = part, piece;
    for (;;) {
      out.end = reader.next(left, piece);
      if (out.end == Result::head) {
        out.status = reader.head().status;
        out.session = reader.head().session_id;
      } else if (out.end == Result::body) {
        out.body.append(piece);
      } else {
        break;
      }
    }
    if (out.end == Result::done) out.rest = left.size() + in.size();
  }
  if (out.end == Result::invalid) out.why = reader.why();
  out.until_close = reader.ends_with_connection();
  return out;
}

// One reader is used for all step sizes, so this also tests that reset() is sufficient.
Read read(std::string_view in) {
  ResponseReader reader(100);
  const Read whole = read_in(in.size(), in, reader);
  for (const std::size_t step : {1u, 2u, 3u, 7u, 50u}) {
    CAPTURE(step);
    reader.reset();
    CHECK(read_in(step, in, reader) == whole);
  }
  return whole;
}

}  // namespace

TEST_CASE("a response is read to its end, however it is split, and following bytes are kept") {
  CHECK(read("HTTP/1.1 200 OK\r\nMcp-Session-Id: s\r\nContent-Length: 2\r\n\r\nokHTTP") ==
        Read{200, "s", "ok", "", Result::done, false, 4});
  CHECK(
      read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n") ==
      Read{200, "", "ok", "", Result::done, false, 0});
  CHECK(read("HTTP/1.1 204 No Content\r\nMcp-Session-Id: s\r\n\r\nx") ==
        Read{204, "s", "", "", Result::done, false, 1});
  CHECK(read("HTTP/1.0 200 OK\r\n\r\nok") == Read{200, "", "ok", "", Result::more, true, 0});
  CHECK(read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok") ==
        Read{200, "", "ok", "", Result::more, false, 0});
}

TEST_CASE("interim heads are skipped, and an upgrade is rejected") {
  CHECK(read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
             "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") ==
        Read{200, "", "ok", "", Result::done, false, 0});
  CHECK(read("HTTP/1.1 101 Switching Protocols\r\n\r\n").why ==
        "an upgrade that was not requested");
}

TEST_CASE("an invalid response is reported with a reason") {
  CHECK(read("SSH-2.0-x\r\n\r\n").why == "no HTTP/1.1 status line");
  CHECK(read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n").why ==
        "a malformed chunk");
}

TEST_CASE("the size of a head is limited, with or without an interim head before it") {
  const auto head = [](std::size_t bytes) {
    const std::string begin = "HTTP/1.1 204 No Content\r\nX: ";
    return begin + std::string(bytes - begin.size() - 4, 'x') + "\r\n\r\n";
  };
  CHECK(read(head(100)).end == Result::done);
  CHECK(read("HTTP/1.1 100 Continue\r\n\r\n" + head(100)).end == Result::done);
  ResponseReader reader(100);
  for (const std::size_t step : {1u, 7u, 1000u}) {
    for (const std::string &text : {head(101), "HTTP/1.1 100 Continue\r\n\r\n" + head(101)}) {
      reader.reset();
      CHECK(read_in(step, text, reader).end == Result::head_too_large);
    }
  }
}

TEST_CASE("a head that arrived in pieces remains valid after reset()") {
  ResponseReader reader(100);
  std::string_view in = "HTTP/1.1 200 OK\r\nMcp-Ses", piece;
  REQUIRE(reader.next(in, piece) == Result::more);
  in = "sion-Id: abc\r\nContent-Length: 9\r\n\r\n";
  REQUIRE(reader.next(in, piece) == Result::head);
  CHECK(reader.missing() == 9);
  reader.reset();
  CHECK(reader.head().session_id == "abc");
  CHECK(reader.missing() == 0);
  in = "HTTP/1.1 204 No Content\r\n\r\n";
  REQUIRE(reader.next(in, piece) == Result::head);
  CHECK(reader.head().session_id.empty());
}
