// Tests the validation of message headers, and the functions that create structs.
#include <bulkhead/cpp/messages.hpp>
#include <bulkhead/testing/fake_host.hpp>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace {

std::string fault(const std::vector<bh_header> &headers) {
  bh_error error = bh::make_error();
  const bh_status status = bh::check_headers(headers, &error);
  CHECK(status == error.code);
  CHECK(bh::check_headers(headers, nullptr) == status);
  return std::string(bh::text(error));
}
bh_header header(std::string_view name, std::string_view value) {
  return {bh::str(name), bh::str(value)};
}

}  // namespace

TEST_CASE("a message in a session has no headers and no peer") {
  const bh_incoming message = bh::incoming(5, 6, "{}");
  CHECK(message.size == sizeof message);
  CHECK(message.flags == 0);
  CHECK(message.session == 5);
  CHECK(message.stream == 6);
  CHECK(bh::view(message.message) == "{}");
  CHECK(bh::headers(message).empty());
  CHECK(message.peer == nullptr);
}

TEST_CASE("a failure has an error and no HTTP response") {
  const bh_error error = bh::make_error(BH_E_IO, "broken");
  const bh_lane_failure failure = bh::lane_failure(error);
  CHECK(failure.size == sizeof failure);
  CHECK(failure.error == &error);
  CHECK(failure.http_status == 0);
  CHECK(failure.challenge_count == 0);
  CHECK(failure.scope.n == 0);
}

TEST_CASE("headers are accepted or rejected as the ABI requires") {
  CHECK(fault({}).empty());
  CHECK(fault({header("Mcp-Name", "a\tb \xC3\xA9\xFF"), header("!#$%&'*+-.^_`|~09azAZ", "")})
            .empty());
  for (const std::string_view name :
       {std::string_view(""), std::string_view("a b"), std::string_view("a:"),
        std::string_view("a\r\nb"), std::string_view("\xC3\xA9"), std::string_view("a\0b", 3),
        std::string_view("@"), std::string_view("[")}) {
    CHECK(fault({header("A", "1"), header(name, "s3cret")}) ==
          "the name of header 2 is not a token (RFC 9110)");
  }
  for (const std::string_view value :
       {std::string_view("s3cret\r\nB: 1"), std::string_view("\n"), std::string_view("\0", 1),
        std::string_view("\x7F"), std::string_view("\x1F")}) {
    CHECK(fault({header("A", value)}) == "the value of header \"A\" contains a control character");
  }
  std::vector<bh_header> many(BH_HEADER_COUNT, header("A", "1"));
  CHECK(fault(many).empty());
  many.push_back(header("A", "1"));
  CHECK(fault(many) == "a message has at most 64 headers, not 65");
  const std::string most(BH_HEADER_BYTES - 1, 'x');
  CHECK(fault({header("A", most)}).empty());
  CHECK(fault({header("AB", most)}) ==
        "the headers of a message have at most 32768 bytes, not 32769");
}
