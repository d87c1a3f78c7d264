// Tests the detection of a connection's protocol.
#include "transport-vsock/sniff.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "mcp-frame/frame.hpp"

using namespace transport_vsock;
using Kind = Sniffed::Kind;
using namespace std::string_literals;

namespace {

Kind kind(const std::string &in, std::size_t max_frame = mcp_frame::max_total) {
  const std::vector<std::string> prefixes{"OWN"};
  const Sniffed alone = sniff(in, prefixes, max_frame);
  CHECK(alone.start == 0);
  const std::string with_line = "\0OWN:name\n"s + in;
  const Sniffed after_line = sniff(with_line, prefixes, max_frame);
  CHECK(after_line.start == 10);
  CHECK(after_line.name == "name");
  CHECK(after_line.kind == alone.kind);
  return alone.kind;
}

}  // namespace

TEST_CASE("the first bytes decide between frames, lines and other protocols") {
  CHECK(kind("{") == Kind::lines);
  CHECK(kind("\0\0\1\0MC"s) == Kind::frames);
  CHECK(kind("\0\0\1\0M"s) == Kind::more);
  CHECK(kind("\0\0\1\0XX"s) == Kind::other);
  CHECK(kind("GET /") == Kind::other);
  CHECK(kind("\x16\3\1"s) == Kind::other);  // TLS
}

TEST_CASE("a frame may be as long as the connection allows") {
  const std::string two_mib = "\0\x20\0\0MC"s, sixteen_mib = "\1\0\0\0MC"s;
  CHECK(kind(two_mib) == Kind::other);
  CHECK(kind(two_mib, 2 << 20) == Kind::frames);
  CHECK(kind(two_mib, (2 << 20) - 1) == Kind::other);
  CHECK(kind(sixteen_mib, 2 << 20) == Kind::other);
  CHECK(kind(sixteen_mib, 64 << 20) == Kind::frames);
  CHECK(kind("GET /", 64 << 20) == Kind::other);
}
