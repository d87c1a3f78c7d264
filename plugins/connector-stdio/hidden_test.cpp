// Tests that values are masked in a stream, however the stream is split into pieces.
#include "connector-stdio/hidden.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "connector-stdio/definition.hpp"

using namespace connector_stdio;

namespace {

StreamMask mask_of(std::vector<std::string> values) {
  StreamMask out;
  out.use(std::move(values));
  return out;
}

// Masks the text as a stream that arrives in pieces of `bytes` bytes, and returns the result.
std::string in_pieces(const std::vector<std::string> &values, std::string_view text,
                      std::size_t bytes) {
  StreamMask mask = mask_of(values);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += bytes) out += mask.add(text.substr(at, bytes));
  return out + mask.finish();
}

}  // namespace

TEST_CASE("a value is masked regardless of how the stream is split") {
  const std::vector<std::string> values = {"tango-7=\"foxtrot\"",
                                           "tango-7",
                                           "foxtrot\" and on",
                                           "back\\slash",
                                           "\xC3\xBCmlaut-\xF0\x9F\x98\x80",
                                           "%41bcdefgh"};
  for (const auto &[text, expected] : std::initializer_list<std::pair<std::string, std::string>>{
           {"a tango-7=\"foxtrot\" b\n", "a *** b\n"},
           {"a tango-7=\"foxtrot\" and on\n", "a ***\n"},
           {"tango-7 tango-7=\"foxtrot tango-\n", "*** ***=\"foxtrot tango-\n"},
           {R"({"k":"tango-7=\"foxtrot\""})", R"({"k":"***"})"},
           {R"({"k":"{\"k\":\"tango-7=\\\"foxtrot\\\"\"}"})", R"({"k":"{\"k\":\"***\"}"})"},
           {R"("t\u0061ngo-7\u003D\u0022foxtrot\u0022")", R"("***")"},
           {"?q=tango-7%3D%22foxtrot%22&r", "?q=***&r"},
           {"?q=tango-7%253D%2522foxtrot%2522&r", "?q=***&r"},
           {R"(C:\back\slash "back\\slash")", R"(C:\*** "***")"},
           {"<\xC3\xBCmlaut-\xF0\x9F\x98\x80>", "<***>"},
           {R"(<\u00fcmlaut-\ud83d\ude00>)", "<***>"},
           {"%2541bcdefgh %41bcdefgh Abcdefgh", "*** *** ***"},
           {"100% of \\ and %4 \\u00 \\ud83d\n", "100% of \\ and %4 \\u00 \\ud83d\n"},
           {"nothing of that", "nothing of that"}}) {
    for (std::size_t bytes = 1; bytes <= text.size(); ++bytes) {
      INFO(text << " in pieces of " << bytes);
      CHECK(in_pieces(values, text, bytes) == expected);
    }
  }
}

TEST_CASE("a value is masked if it contains invisible characters or is encoded in base64") {
  using namespace std::string_literals;
  const std::vector<std::string> values = {"tango-7-foxtrot", "line one\nline two"};
  for (const auto &[text, expected] : std::initializer_list<std::pair<std::string, std::string>>{
           {"a tan\x1B[1;31mgo-7-\x1B[0mfoxtrot b\n", "a *** b\n"},
           {"a \x1B[31mtango-7-foxtrot\x1B[0m b\n", "a \x1B[31m***\x1B[0m b\n"},
           {"\x1B[38;2;1;2;3mt\x1B[0ma\x1B[Kn\x1B(Bg\x1B=o-7-foxtrot\n", "\x1B[38;2;1;2;3m***\n"},
           {"tan\x1B]8;;https://x/\x1B\\go-7-fox\x1B]0;title\atrot\n", "***\n"},
           {"tan\xC2\x9B"
            "31mgo-7-foxtrot\n",
            "***\n"},
           {"tan\xC2\x90go-7\xC2\x9D-fox\xC2\x9Etrot\n", "***\n"},
           {"tango\0-7-\0foxtrot\n"s, "***\n"},
           {"tango\r-7-foxtrot\r\n", "***\r\n"},
           {"tango-\n7-foxtrot\n", "***\n"},
           {"tango-\r\n7-foxtrot\n", "***\n"},
           {"t\bta\ban\bngo-7-foxtrot\n", "t\b***\n"},
           {"tan\xE2\x80\x8Bgo-7\xC2\xAD-foxtrot\xEF\xBB\xBF\n", "***\xEF\xBB\xBF\n"},
           {R"({"k":"tan\u001b[31mgo-7-\u0000foxtrot"})", R"({"k":"***"})"},
           {"?q=tan%1B%5B31mgo%2D7-foxtrot&r\n", "?q=***&r\n"},
           {"tan\x1B[1mgo%2\x1B[0mD7-foxtrot\n", "***\n"},
           {"line one\x1B[0m\nline two\n", "***\n"},
           {"dGFuZ28tNy1mb3h0cm90\n", "***\n"},              // VALUE
           {"dTp0YW5nby03LWZveHRyb3Q=\n", "dTp0***b3Q=\n"},  // u:VALUE
           {"dXM6dGFuZ28tNy1mb3h0cm90\n", "dXM6***\n"},      // us:VALUE
           {"dGFuZ28tNy1\x1B[0m\nmb3h0cm90\n", "***\n"},
           {"t a n g o-7-foxtrot \x1B[3 \x1B tan\n", "t a n g o-7-foxtrot \x1B[3 \x1B tan\n"}}) {
    for (std::size_t bytes = 1; bytes <= text.size(); ++bytes) {
      INFO(text << " in pieces of " << bytes);
      CHECK(in_pieces(values, text, bytes) == expected);
    }
  }
}

TEST_CASE("a line that ends with a few bytes of a value is written immediately") {
  StreamMask mask = mask_of({"tango-7-foxtrot"});
  CHECK(mask.add("\x1B[31mit is t\x1B[0m\n") == "\x1B[31mit is t\x1B[0m\n");
  CHECK(mask.add("it is tango\n") == "it is ");
  CHECK(mask.add("and on\n") == "tango\nand on\n");
}

TEST_CASE("text that cannot begin a value is written immediately") {
  StreamMask mask = mask_of({"tango-7-foxtrot", "quebec"});
  CHECK(mask.add("ready\n") == "ready\n");
  CHECK(mask.add("it is tan") == "it is ");
  CHECK(mask.add("gled\n") == "tangled\n");
  CHECK(mask.add("q") == "");
  CHECK(mask.add("\n") == "q\n");
  CHECK(mask.finish() == "");
  StreamMask none;
  CHECK(none.add("tango-7-foxtrot") == "tango-7-foxtrot");
}

TEST_CASE("a truncated value at the end of the stream is masked, except for a few bytes") {
  CHECK(in_pieces({"tango-7-foxtrot"}, "it is tango-7-foxtro", 7) == "it is ***");
  CHECK(in_pieces({"tango-7-foxtrot"}, "it is t\\u0061ngo", 7) == "it is ***");
  CHECK(in_pieces({"tango-7-foxtrot"}, "it is tan", 7) == "it is tan");
  CHECK(in_pieces({"abcdefgh", "efghijkl"}, "-abcdefghij", 3) == "-***");
  CHECK(mask_of({"tango-7-foxtrot"}).mask("it is tango-7-fox") == "it is ***");
}

TEST_CASE("the delayed part of a stream is limited") {
  const std::string value = std::string(50, 'a') + "b";
  StreamMask mask = mask_of({value});
  std::size_t written = 0, sent = 0, most = 0;
  for (int i = 0; i < 500; ++i) {
    sent += 100;
    written += mask.add(std::string(100, 'a')).size();
    most = std::max(most, sent - written);
  }
  CHECK(most <= value.size());
  StreamMask escaped = mask_of({std::string(20'000, 'a') + "b"});
  std::string out, in = std::string(1u << 20, 'a');
  for (std::size_t at = 0; at < in.size(); at += 4096) out += escaped.add(in.substr(at, 4096));
  CHECK(out.size() + 200'000 > in.size());
}

TEST_CASE("values of variables and their parts are masked, but common values are not") {
  ::setenv("HOME", "/home/of-the-test", 1);
  Definition d;
  bh_error error{};
  REQUIRE(parse_definition("s", R"({"command":"x","env":{"MODE":"careful","PLAIN":"eight-by",
      "PIN_TOKEN":"1234","DB":"postgres://me:pass1@db/x","AUTH":"Bearer abcdefgh1",
      "ADO":"Server=h;User=me;Password=pass2;","KEY":"-----BEGIN-----\nMIIEvQIBADANBgkq\n-----END-----",
      "HOME":"/home/of-the-test"}})",
                           &d, &error) == BH_OK);
  const auto hidden = [&](std::string_view value) {
    return std::find(d.hidden.begin(), d.hidden.end(), value) != d.hidden.end();
  };
  for (const char *value : {"eight-by", "1234", "postgres://me:pass1@db/x", "pass1", "abcdefgh1",
                            "pass2", "MIIEvQIBADANBgkq"}) {
    INFO(value);
    CHECK(hidden(value));
  }
  CHECK_FALSE(hidden("careful"));
  CHECK_FALSE(hidden("/home/of-the-test"));
}
