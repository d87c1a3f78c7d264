#include "mcp/header_value.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/text.hpp"

using namespace bulkhead::mcp;

namespace {

std::string encoded(std::string_view text) {
  std::string out;
  append_header_value(&out, text);
  return out;
}

std::string decoded(std::string_view value) {
  std::string scratch;
  const HeaderText text = decode_header_value(value, &scratch);
  return text.problem != nullptr ? std::string("malformed") : std::string(text.text);
}

}  // namespace

TEST_CASE("header values: printable ASCII is plain, all other text is base64") {
  for (const char *plain : {"fs.read", "us west 1", "a=b?c", "=?base64?SGVsbG8=", "SGVsbG8=?=",
                            "=?BASE64?SGVsbG8=?=", "~!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}", "x"}) {
    INFO(plain);
    CHECK(encoded(plain) == plain);
    CHECK(decoded(plain) == plain);
  }
  CHECK(encoded("Hello, \u4e16\u754c") == "=?base64?SGVsbG8sIOS4lueVjA==?=");
  CHECK(encoded(" us") == "=?base64?IHVz?=");
  CHECK(encoded("us ") == "=?base64?dXMg?=");
  CHECK(encoded("a\r\nb") == "=?base64?YQ0KYg==?=");
  CHECK(encoded("a\tb") == "=?base64?YQli?=");
  CHECK(encoded(std::string_view("\0", 1)) == "=?base64?AA==?=");
  CHECK(encoded("\x7F") == "=?base64?fw==?=");
  CHECK(encoded("") ==
        "=?base64?"
        "?=");
  CHECK(encoded("=?base64?SGVsbG8=?=") == "=?base64?PT9iYXNlNjQ/U0dWc2JHOD0/PQ==?=");
  CHECK(encoded("=?base64?=") == "=?base64?PT9iYXNlNjQ/PQ==?=");
}

TEST_CASE("header values: encoded text is a valid header value and decodes to the original text") {
  std::string text;
  for (char32_t c = 0; c < 0x3000; ++c) {
    std::string one;
    bh::append_utf8(&one, c);
    text += one;
    for (const std::string &each : {one, "a" + one, one + "a", one + one}) {
      const std::string value = encoded(each);
      REQUIRE(bh::is_header_value(value));
      REQUIRE(decoded(value) == each);
      REQUIRE(decoded(" \t" + value + "\t ") == each);
    }
  }
  CHECK(decoded(encoded(text)) == text);
  CHECK(decoded(encoded(encoded(text))) == encoded(text));
}

TEST_CASE("header values: the base64 has one canonical form") {
  CHECK(decoded("=?base64?SGVsbG8=?=") == "Hello");
  CHECK(decoded("=?base64?"
                "?=")
            .empty());
  CHECK(decoded("").empty());
  CHECK(decoded(" \t").empty());
  for (const char *bad : {"=?base64?SGVsbG8?=",      // no padding
                          "=?base64?SGVsbG8==?=",    // too much padding
                          "=?base64?SGVsbG9=?=",     // bits after the last byte
                          "=?base64?SGVs!!!bG8=?=",  // invalid characters
                          "=?base64?SGVs bG8=?=", "=?base64?SGVs\tbG8=?=", "=?base64? SGVsbG8=?=",
                          "=?base64?SGVsbG8= ?=", "=?base64?-_8=?=", "=?base64?=?=",
                          "=?base64?====?=", "=?base64?S?=", "=?base64?SGVsbG8=SGVsbG8=?=",
                          "=?base64?=",              // overlapping markers
                          "=?base64?/w==?=",         // FF is not UTF-8
                          "=?base64?7aCA?=",         // a surrogate
                          "=?base64?SGVsbG\xFF=?=",  // libsodium decodes FF like a slash
                          "=?base64?wIA=?="}) {      // an overlong form
    INFO(bad);
    CHECK(decoded(bad) == "malformed");
  }
  for (int c = 0; c < 256; ++c) {
    // The base64 form of "A" is "QQ==". With any other second character, it is malformed or encodes
    // a different text.
    const std::string value =
        std::string("=?base64?") + static_cast<char>('Q') + static_cast<char>(c) + "==?=";
    CHECK((decoded(value) == "A") == (c == 'Q'));
  }
  CHECK(decoded("caf\xC3\xA9") == "malformed");
  CHECK(decoded("a\x01z") == "malformed");
  CHECK(decoded("a\x7F") == "malformed");
  CHECK(decoded("\xFF") == "malformed");
  CHECK(decoded("a\tb") == "a\tb");  // HTTP permits tabs
}
