// Tests the detection and conversion of character encodings.
#include "builtin-http/charset.hpp"

#include <catch2/catch.hpp>

using namespace builtin_http;

namespace {

std::string converted(std::string body, std::string_view type) {
  const std::atomic<bool> never{false};
  std::string out;
  std::string problem;
  return to_utf8(std::move(body), type, never, &out, &problem) ? out : "problem: " + problem;
}

}  // namespace

TEST_CASE("character encodings are detected and converted") {
  CHECK(converted("\xC3\xA9", "text/html") == "\xC3\xA9");
  CHECK(converted("\xE9", "text/html") == "\xC3\xA9");
  CHECK(converted("\x80\x81\xFF", "text/plain; charset=\"ISO-8859-1\"") ==
        "\xE2\x82\xAC\xEF\xBF\xBD\xC3\xBF");
  CHECK(converted("\xC3\xA9", "text/plain; Charset=windows-1252") == "\xC3\x83\xC2\xA9");
  CHECK(converted("\xE9x", "text/plain; charset=utf-8") == "\xEF\xBF\xBDx");
  CHECK(converted("\xEF\xBB\xBFx", "text/plain; charset=latin1") == "x");
  CHECK(converted("<meta charset='iso-8859-1'>\xC3\xA9", "text/html") ==
        "<meta charset='iso-8859-1'>\xC3\x83\xC2\xA9");
  CHECK(converted("x", "text/html; charset=x-none").find("\"x-none\" is not supported") !=
        std::string::npos);
  // iconv supports this encoding, but it is not part of the Encoding Standard.
  CHECK(converted("x", "text/plain; charset=iso-2022-cn-ext").find("not supported") !=
        std::string::npos);
}

TEST_CASE("encodings of other scripts are converted, for all their labels") {
  const std::string japanese = "\xE6\x97\xA5\xE6\x9C\xAC";
  const std::string russian = "\xD0\x9C\xD0\xB8\xD1\x80";
  CHECK(converted("\x93\xFA\x96\x7B", "text/plain; charset=Shift_JIS") == japanese);
  CHECK(converted("\xC6\xFC\xCB\xDC", "text/plain; charset=euc-jp") == japanese);
  CHECK(converted("\x1B$BF|K\\\x1B(B", "text/plain; charset=iso-2022-jp") == japanese);
  CHECK(converted("\xCC\xE8\xF0", "text/plain;charset=windows-1251") == russian);
  CHECK(converted("\xED\xC9\xD2", "text/plain;charset=koi8-r") == russian);
  CHECK(converted("\xD6\xD0", "text/plain;charset=gb2312") == "\xE4\xB8\xAD");
  CHECK(converted("\xA4\xA4", "text/plain;charset=big5") == "\xE4\xB8\xAD");
  CHECK(converted("\xB0\xA1", "text/plain;charset=euc-kr") == "\xEA\xB0\x80");
  CHECK(converted(std::string("\xFF\xFEM\0\x38\x04", 6), "text/plain") == "M\xD0\xB8");
  CHECK(converted(std::string("\xFE\xFF\0M", 4), "text/plain;charset=utf-8") == "M");
  CHECK(converted("<html><meta http-equiv=Content-Type content='text/html; charset=koi8-r'>\xED",
                  "text/html") ==
        "<html><meta http-equiv=Content-Type content='text/html; charset=koi8-r'>\xD0\x9C");
  CHECK(converted("<meta charset=utf-16>\xC3\xA9", "text/html") == "<meta charset=utf-16>\xC3\xA9");
}

TEST_CASE("invalid bytes are replaced, and a long conversion can be cancelled") {
  CHECK(converted("a\x93", "text/plain;charset=shift_jis") == "a\xEF\xBF\xBD");
  CHECK(converted("\x80\x80z", "text/plain;charset=euc-jp").find('z') != std::string::npos);
  const std::string text(100'000, '\xE9');
  CHECK(converted(text, "text/plain;charset=latin1").size() == 200'000);
  const std::atomic<bool> cancelled{true};
  std::string out;
  std::string problem;
  CHECK_FALSE(to_utf8(std::string(text), "text/plain;charset=latin1", cancelled, &out, &problem));
  CHECK(problem == "the call was cancelled");
}
