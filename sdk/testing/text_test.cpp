// Tests the SDK's text functions and clocks.
#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/text.hpp>
#include <catch2/catch.hpp>

#include <cerrno>
#include <string>
#include <string_view>

using namespace std::string_literals;
using namespace std::string_view_literals;

TEST_CASE("case conversion is limited to ASCII") {
  CHECK(bh::lowered("AZaz09[@`{ÄÖ") == "azaz09[@`{ÄÖ");
  CHECK(bh::equal_ignoring_case("Content-TYPE", "content-type"));
  CHECK(bh::equal_ignoring_case("", ""));
  CHECK_FALSE(bh::equal_ignoring_case("content-typ", "content-type"));
  // These characters are not ASCII letters, although they differ only in the bit that distinguishes
  // upper and lower case.
  CHECK_FALSE(bh::equal_ignoring_case("@", "`"));
  CHECK_FALSE(bh::equal_ignoring_case("\xC4", "\xE4"));
  CHECK(bh::starts_with_ignoring_case("HTTPS://x", "https://"));
  CHECK_FALSE(bh::starts_with_ignoring_case("http", "https"));
}

TEST_CASE("hexadecimal digits are converted") {
  CHECK(bh::hex("\x00\x1f\xa0\xff"sv) == "001fa0ff");
  CHECK(bh::hex("").empty());
  CHECK(bh::is_lower_hex("0123456789abcdef"));
  CHECK_FALSE(bh::is_lower_hex("0A"));
  int sum = 0;
  for (const char c : "0123456789abcdefABCDEF"sv) sum += bh::hex_value(c);
  CHECK(sum == 120 + 75);
  for (const char c : "/:@G`g \x80"sv) CHECK(bh::hex_value(c) == -1);
}

TEST_CASE("UTF-8: valid characters of RFC 3629 are accepted") {
  for (const std::string_view good :
       {"\x7F"sv, "\0"sv, "\xC2\x80"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv, "\xED\x9F\xBF"sv,
        "\xEE\x80\x80"sv, "\xEF\xBF\xBF"sv, "\xF0\x90\x80\x80"sv, "\xF4\x8F\xBF\xBF"sv}) {
    CAPTURE(bh::hex(good));
    CHECK(bh::utf8_length(good) == good.size());
    CHECK(bh::utf8_length(std::string(good) + "x") == good.size());
    CHECK(bh::is_utf8("12345678"s.append(good).append("12345678")));
    std::size_t size = 0;
    std::string again;
    bh::append_utf8(&again, bh::first_character(good, &size));
    CHECK(again == good);
    CHECK(size == good.size());
  }
  for (const std::string_view bad :
       {"\x80"sv, "\xBF"sv, "\xC0\x80"sv, "\xC1\xBF"sv, "\xC2"sv, "\xC2 "sv, "\xE0\x9F\xBF"sv,
        "\xE1\x80"sv, "\xED\xA0\x80"sv, "\xED\xBF\xBF"sv, "\xF0\x8F\xBF\xBF"sv,
        "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xF0\x90\x80"sv, "\xFE"sv, "\xFF"sv}) {
    CAPTURE(bh::hex(bad));
    CHECK(bh::utf8_length(bad) == 0);
    CHECK_FALSE(bh::is_utf8("12345678"s.append(bad)));
    std::size_t size = 0;
    CHECK(bh::first_character(bad, &size) == bh::replacement_character);
    CHECK(size == 1);
  }
  CHECK(bh::utf8_length("") == 0);
  CHECK(bh::is_utf8(""));
}

TEST_CASE("text is truncated and repaired at character boundaries") {
  constexpr std::string_view text = "aä€😀";  // characters of 1, 2, 3 and 4 bytes
  const std::size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
  for (std::size_t i = 0; i < std::size(whole); ++i) {
    CHECK(bh::cut_text(text, i) == text.substr(0, whole[i]));
  }
  CHECK(bh::character_boundary("\x80\x80\x80\x80\x80\x80", 5) == 5);  // not UTF-8
  CHECK(bh::count_characters(text) == 4);
  CHECK(bh::repaired_utf8("a\xFF€\xE2\x82") == "a\xEF\xBF\xBD€\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST_CASE("text is prepared for messages") {
  CHECK(bh::one_line("a\n\x7F\xC2\x85ä\xFF", 100) == "a   ä?");
  CHECK(bh::one_line("a\xE2\x80\xAE\xE2\x81\xA9\xE2\x80\xA8", 100) == "a   ");
  CHECK(bh::printable("a\n\xC2\x9B\xE2\x80\xAE\xFF€") == "a????€");
  CHECK(bh::printable("a\n\t\x1B", true) == "a\n\t?");
  CHECK(bh::one_line("aä€", 5) == "aä");
  CHECK(bh::one_line("aä€", 0).empty());
  CHECK(bh::one_line("\xEF\xBF\xBD", 100) == "\xEF\xBF\xBD");  // valid UTF-8
  CHECK(bh::in_quotes("name") == "\"name\"");
  CHECK(bh::in_quotes("aä€", 4) == "\"aä...\"");
  CHECK(bh::error_name(ENOENT) == "No such file or directory");
  CHECK(bh::error_name(99'999).find("99999") != std::string::npos);
}

TEST_CASE("the clocks advance") {
  const std::uint64_t before = bh::monotonic_ns();
  CHECK(bh::monotonic_ns() >= before);
  CHECK(bh::monotonic_ms() >= before / 1'000'000);
  const std::uint64_t year_2020 = 1'577'836'800;
  CHECK(bh::unix_s() > year_2020);
  CHECK(bh::unix_ms() / 1000 >= bh::unix_s() - 1);
  CHECK(bh::unix_ns() / 1'000'000'000 >= bh::unix_s() - 1);
}
