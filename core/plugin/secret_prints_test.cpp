#include "plugin/secret_prints.hpp"

#include <catch2/catch.hpp>

#include <cstdio>
#include <string>

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

TEST_CASE("values are found at any position, and other text is not masked") {
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

TEST_CASE("values in JSON strings and overlapping values are found") {
  SecretPrints prints(key);
  prints.add("with \"quotes\"\nand lines");
  prints.add("abcdefgh");
  prints.add("efghijkl");
  CHECK(masked(prints, R"({"k":"with \"quotes\"\nand lines"})", 1) == R"({"k":"***"})");
  CHECK(masked(prints, "with \"quotes\"\nand lines", 1) == "***");
  CHECK(masked(prints, "-abcdefghijkl-", 1) == "-***-");
}

TEST_CASE("prints do not contain the values, and can be passed to another process") {
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

TEST_CASE("values with the same prefix are found, longest first") {
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

TEST_CASE("the number of values is limited") {
  SecretPrints prints(key);
  for (int i = 1000; i < 4000; ++i) prints.add("a value of number " + std::to_string(i));
  CHECK(masked(prints, "a value of number 1010", 1) == "***");
  CHECK(masked(prints, "a value of number 3999", 0) == "a value of number 3999");
}

TEST_CASE("values with the escapes of other JSON writers are found") {
  SecretPrints prints(key);
  prints.add("q7/Zk+9w&L<T>2X'v8==");
  for (const char *written :
       {R"(q7/Zk+9w&L<T>2X'v8==)", R"(q7\/Zk+9w&L<T>2X'v8==)",
        R"(q7/Zk+9w\u0026L\u003cT\u003e2X'v8==)", R"(q7/Zk+9w\u0026L\u003CT\u003E2X'v8==)",
        R"(q7/Zk\u002B9w\u0026L\u003CT\u003E2X\u0027v8==)"}) {
    CHECK(masked(prints, "{\"k\":\"" + std::string(written) + "\"}", 1) == R"({"k":"***"})");
  }
}

TEST_CASE("texts that match nearly everywhere are masked completely") {
  const auto repeated = [](std::string_view what) {
    std::string text;
    while (text.size() < 256 << 10) text += what;
    return text;
  };
  SecretPrints tokens(key);
  for (std::size_t n = 0; n < 20; ++n) {
    tokens.add("eyJhbGci" + std::string(4'000 - n, static_cast<char>('a' + n)));
  }
  // Attackers know this prefix, but it causes no hashing.
  const std::string begins = repeated("eyJhbGci");
  CHECK(masked(tokens, begins, 0) == begins);
  // The creator of a credential also knows its last bytes.
  SecretPrints made(key);
  made.add(std::string(2'000, 'a') + "b" + std::string(2'000, 'a'));
  CHECK(masked(made, repeated("aaaaaaaa"), 1) == "***");
  CHECK(masked(made, std::string(3'000, 'a'), 0) == std::string(3'000, 'a'));
}

namespace {

// Returns the text as a JSON string in which the characters selected by `escape` are written as \u
// escapes.
template <class F>
std::string json(std::string_view text, F escape) {
  std::string out;
  for (const char c : text) {
    char unit[8];
    std::snprintf(unit, sizeof unit, "\\u%04x",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    if (escape(c)) {
      out += unit;
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}
std::string json(std::string_view text) {
  return json(text, [](char) { return false; });
}
std::string percent(std::string_view text) {
  std::string out;
  for (const char c : text) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%%%02X",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? std::string(1, c) : byte;
  }
  return out;
}

}  // namespace

TEST_CASE("values are found regardless of which characters are escaped") {
  for (const std::string value :
       {"tango-7/foxtrot==", "with \"quotes\" and \\ two", "p%41ss%2Bword", "back\\u0041slash",
        "new\nline-and-\xC3\xBC", "of four bytes \xF0\x9F\x98\x80!", "ends with one\\"}) {
    INFO(value);
    SecretPrints prints(key);
    prints.add(value);
    const auto all = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    for (const std::string &written :
         {value, json(value), json(value, all), json(json(value)), json(json(json(value))),
          percent(value), percent(percent(value)), json(percent(value), all), percent(json(value)),
          json(json(value), all), json(json(value, all))}) {
      INFO(written);
      CHECK(masked(prints, "[\"<" + written + ">\"]", 1) == "[\"<***>\"]");
    }
  }
}

TEST_CASE("one escape anywhere in a value does not hide it") {
  const std::string value = "tango-7/fox+trot==";
  SecretPrints prints(key);
  prints.add(value);
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string one = json(value.substr(i, 1), [](char) { return true; });
    const std::string text = value.substr(0, i) + one + value.substr(i + 1);
    CHECK(masked(prints, "a" + text + "b", 1) == "a***b");
    CHECK(masked(prints, "\\\\" + text + "\\n", 1) == "\\\\***\\n");
    CHECK(masked(prints, R"({"a":"{\"b\":\")" + json(text) + R"(\"}"})", 1) ==
          R"({"a":"{\"b\":\"***\"}"})");
  }
  CHECK(masked(prints, R"(tango-7\/fox%2btrot%3D\u003D %41 \u0042)", 1) == R"(*** %41 \u0042)");
  CHECK(masked(prints, R"(tango-7\/fox\u002gtrot)", 0) == R"(tango-7\/fox\u002gtrot)");
}

TEST_CASE("values next to complete and incomplete multibyte characters are found") {
  SecretPrints prints(key);
  prints.add("tango-\xC3\xBC-\xF0\x9F\x98\x80-foxtrot");
  CHECK(masked(prints, R"("tango-\u00fc-\ud83d\ude00-foxtrot")", 1) == R"("***")");
  CHECK(masked(prints, R"("tango-\u00FC-\uD83D\uDE00-f\u006fxtrot")", 1) == R"("***")");
  CHECK(masked(prints, "tango-%c3%bc-%F0%9F%98%80-foxtrot", 1) == "***");
  CHECK(masked(prints, R"(tango-\u00fc-\ud83d\u0041-foxtrot \ud83d)", 0) ==
        R"(tango-\u00fc-\ud83d\u0041-foxtrot \ud83d)");
}

TEST_CASE("values with spaces are found in form encoding") {
  SecretPrints prints(key);
  prints.add("correct horse+battery");
  CHECK(masked(prints, "p=correct+horse%2Bbattery&q=1", 1) == "p=***&q=1");
  CHECK(masked(prints, "p=correct%20horse%2bbattery&q=1", 1) == "p=***&q=1");
}

TEST_CASE("layers of escapes are removed up to a limit") {
  SecretPrints prints(key);
  prints.add("tango-7=foxtrot");
  std::string text = "tango-7=foxtrot";
  for (unsigned i = 0; i < SecretPrints::max_layers; ++i) {
    text = i == 0 ? "tango-7%3Dfoxtrot" : "tango-7%25" + text.substr(8);
    CHECK(masked(prints, text, 1) == "***");
  }
  text = "tango-7%25" + text.substr(8);
  CHECK(masked(prints, text, 0) == text);
}
