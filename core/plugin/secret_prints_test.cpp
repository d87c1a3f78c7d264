#include "plugin/secret_prints.hpp"

#include <catch2/catch.hpp>

#include "base/archive.hpp"

using namespace bulkhead;

namespace {

const std::string key(32, 'k');

std::string masked(const SecretPrints &prints, std::string_view text, std::uint64_t expected) {
  std::uint64_t count = 0;
  std::string out = prints.mask(text, &count);
  CHECK(count == expected);
  return out;
}

}  // namespace

TEST_CASE("values are found wherever they stand, and nothing else is") {
  SecretPrints prints(key);
  prints.add("tango-7-foxtrot");
  prints.add("another one of 30 characters..");
  prints.add("short");
  CHECK(masked(prints, "tango-7-foxtrot", 1) == "***");
  CHECK(masked(prints, R"({"a":"xtango-7-foxtroty tango-7-foxtrot"})", 2) ==
        R"({"a":"x***y ***"})");
  CHECK(masked(prints, "tango-7-foxtro short", 0) == "tango-7-foxtro short");
  CHECK(masked(prints, "", 0).empty());
  CHECK(masked(prints, "<another one of 30 characters..><tango-7-foxtrot>", 2) == "<***><***>");
}

TEST_CASE("values in JSON strings, and such that overlap") {
  SecretPrints prints(key);
  prints.add("with \"quotes\"\nand lines");
  prints.add("abcdefgh");
  prints.add("efghijkl");
  CHECK(masked(prints, R"({"k":"with \"quotes\"\nand lines"})", 1) == R"({"k":"***"})");
  CHECK(masked(prints, "with \"quotes\"\nand lines", 1) == "***");
  CHECK(masked(prints, "-abcdefghijkl-", 1) == "-***-");
}

TEST_CASE("prints do not hold the values, and go from process to process") {
  SecretPrints prints(key);
  prints.add("tango-7-foxtrot");
  const std::string bytes = to_bytes(prints);
  CHECK(bytes.find("tango") == std::string::npos);
  SecretPrints there;
  REQUIRE(from_bytes(bytes, &there));
  CHECK(there == prints);
  CHECK(masked(there, "a tango-7-foxtrot", 1) == "a ***");
  CHECK(SecretPrints().empty());
  CHECK(masked(SecretPrints(), "tango-7-foxtrot", 0) == "tango-7-foxtrot");
}

TEST_CASE("of values that begin alike each is found, the longest first") {
  SecretPrints prints(key);
  for (const char *value : {"password-one", "password-one-and-more", "password-two", "password"}) {
    prints.add(value);
  }
  CHECK(masked(prints, "password-one-and-more;password-one-and;password-two;password-t;passwor",
               4) == "***;***-and;***;***-t;passwor");
  for (std::size_t n = 0; n < 20; ++n) {
    const std::string before(n, 'p');
    CHECK(masked(prints, before + "password-two" + before, 1) == before + "***" + before);
  }
}

TEST_CASE("a bounded number of values") {
  SecretPrints prints(key);
  for (int i = 1000; i < 4000; ++i) prints.add("a value of number " + std::to_string(i));
  CHECK(masked(prints, "a value of number 1010", 1) == "***");
  CHECK(masked(prints, "a value of number 3999", 0) == "a value of number 3999");
}

TEST_CASE("values as other writers of JSON escape them") {
  SecretPrints prints(key);
  prints.add("q7/Zk+9w&L<T>2X'v8==");
  for (const char *written :
       {R"(q7/Zk+9w&L<T>2X'v8==)", R"(q7\/Zk+9w&L<T>2X'v8==)",
        R"(q7/Zk+9w\u0026L\u003cT\u003e2X'v8==)", R"(q7/Zk+9w\u0026L\u003CT\u003E2X'v8==)",
        R"(q7/Zk\u002B9w\u0026L\u003CT\u003E2X\u0027v8==)"}) {
    CHECK(masked(prints, "{\"k\":\"" + std::string(written) + "\"}", 1) == R"({"k":"***"})");
  }
}

TEST_CASE("texts that look like credentials nearly everywhere") {
  const auto repeated = [](std::string_view what) {
    std::string text;
    while (text.size() < 256 << 10) text += what;
    return text;
  };
  SecretPrints tokens(key);
  for (std::size_t n = 0; n < 20; ++n) {
    tokens.add("eyJhbGci" + std::string(4'000 - n, static_cast<char>('a' + n)));
  }
  const std::string begins = repeated("eyJhbGci");  // what anybody can write: nothing to hash
  CHECK(masked(tokens, begins, 0) == begins);
  // Whoever made the credential can write what fits it at both ends.
  SecretPrints made(key);
  made.add(std::string(2'000, 'a') + "b" + std::string(2'000, 'a'));
  CHECK(masked(made, repeated("aaaaaaaa"), 1) == "***");
  CHECK(masked(made, std::string(3'000, 'a'), 0) == std::string(3'000, 'a'));
}
