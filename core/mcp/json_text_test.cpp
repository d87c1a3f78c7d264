// Tests the JSON functions: the grammar, strings with each instruction set, agreement with two
// other JSON libraries, and the helper functions of scan.hpp.
#include <catch2/catch.hpp>
#include <vector>

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/json_cursor.hpp"
#include "mcp/open_names.hpp"
#include "mcp/other_parsers.hpp"
#include "mcp/random_json.hpp"
#include "mcp/scan.hpp"

using namespace bulkhead::mcp;
using bulkhead::mcp::testing::RandomJson;
using bulkhead::mcp::testing::Verdict;

namespace {

std::string nested(std::uint32_t depth, char open, char close) {
  std::string text;
  for (std::uint32_t i = 0; i < depth; ++i)
    text += open == '{' && i > 0 ? "\"a\":{" : std::string(1, open);
  return text + std::string(depth, close);
}

}  // namespace

TEST_CASE("grammar: valid texts are accepted") {
  const char *texts[] = {"0",
                         "-0",
                         "-0.0",
                         "1e400",
                         "1E-400",
                         "123456789012345678901234567890",
                         "1.5e+10",
                         "true",
                         "false",
                         "null",
                         "\"\"",
                         "\"a\"",
                         R"("\"\\\/\b\f\n\r\t\u0000\uFFFF")",
                         R"("\ud800")",
                         R"("\udc00\ud800x")",
                         "[]",
                         "{}",
                         " [ ] ",
                         "\t{\r\n}\n",
                         "[1,2]",
                         "[ 1 , \"x\" , null ]",
                         R"({"a":{"a":[{}]},"a":1})",
                         "\"\x7F\"",
                         "\"\xC2\x80\xDF\xBF\"",
                         "\"\xE0\xA0\x80\xED\x9F\xBF\"",
                         "\"\xEE\x80\x80\xEF\xBF\xBF\"",
                         "\"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\"",
                         "[[],[[]],{}]"};
  for (const char *text : texts) {
    INFO(text);
    CHECK(valid_json(text));
  }
}

TEST_CASE("grammar: invalid texts are rejected") {
  const char *texts[] = {
      "", " ", "01", "-01", "-", "+1", "1.", ".5", "1.e5", "1e", "1e+", "0x10", "1_000", "NaN",
      "Infinity", "-Infinity", "tru", "truee", "True", "nul", "nulll", "\"", "\"a", "'a'",
      R"("\x41")", R"("\u12")", R"("\u12g4")", R"("\U0041")", "\"\\", "\"\n\"", "\"\t\"",
      "\"\x1F\"", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{", "}", "{\"a\"",
      "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{,}", "{a:1}", "{1:1}", "{\"a\" 1}",
      "{\"a\"::1}", "{\"a\":1]", "{\"a\":1 \"b\":2}", "1 2", "{} {}", "[]]", "\xEF\xBB\xBF{}",
      "/**/1", "[1]//", "\x0B[]", "\xC2\xA0[]",
      // Invalid UTF-8
      "\"\x80\"", "\"\xBF\"", "\"\xC0\x80\"", "\"\xC1\xBF\"", "\"\xC2\"", "\"\xC2 \"",
      "\"\xE0\x9F\xBF\"", "\"\xE1\x80\"", "\"\xED\xA0\x80\"", "\"\xED\xBF\xBF\"",
      "\"\xF0\x8F\xBF\xBF\"", "\"\xF4\x90\x80\x80\"", "\"\xF5\x80\x80\x80\"", "\"\xF0\x90\x80\"",
      "\"\xFE\"", "\"\xFF\"", "[\xC3\xA9]"};
  for (const char *text : texts) {
    INFO(text);
    CHECK_FALSE(valid_json(text));
  }
  CHECK_FALSE(valid_json(std::string_view("\"\0\"", 3)));
  CHECK_FALSE(valid_json(std::string_view("1\0", 2)));
}

TEST_CASE("every truncation of a valid text is rejected") {
  const std::string text = R"({"key":["text with \u00e9 and )"
                           "\xE2\x82\xAC\xF0\x9F\x98\x80"
                           R"(",{"n":[true,null,false]}]})";
  REQUIRE(valid_json(text));
  for (std::size_t n = 0; n < text.size(); ++n) {
    INFO(n);
    // The copy is exactly as long as the text, so a sanitizer detects reads beyond its end.
    const std::vector<char> cut(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
    CHECK_FALSE(valid_json({cut.data(), cut.size()}));
  }
}

TEST_CASE("nesting depth is limited") {
  for (const char open : {'[', '{'}) {
    const char close = open == '[' ? ']' : '}';
    CHECK(valid_json(nested(128, open, close)));
    CHECK_FALSE(valid_json(nested(129, open, close)));
    CHECK(valid_json(nested(1024, open, close), 1024));
    CHECK_FALSE(valid_json(nested(1025, open, close), 1'000'000));
    CHECK_FALSE(valid_json(nested(1'000'000, open, close), 1024));
  }
  CHECK(valid_json("1", 0));
  CHECK_FALSE(valid_json("[]", 0));
}

TEST_CASE("strings: all variants return the same result") {
  const json::StringEndVariants variants = json::string_end_variants();
  REQUIRE(variants.count >= 1);
  RandomJson random(7);
  static constexpr const char *pieces[] = {"a",
                                           "0123456789abcdef",
                                           "\\\\",
                                           "\\\"",
                                           "\\u00Ff",
                                           "\\u12",
                                           "\xC3\xA9",
                                           "\xE2\x82\xAC",
                                           "\xF0\x9F\x98\x80",
                                           "\xE2\x82",
                                           "\x80",
                                           "\xED\xA0\x80",
                                           "\x1F",
                                           "\\x",
                                           "\""};
  for (int round = 0; round < 20000; ++round) {
    std::string text(random.below(40), 'x');
    // The last pieces are invalid. Three out of four strings contain none of them.
    const std::uint32_t kinds = random.below(4) == 0 ? std::size(pieces) : 9;
    for (std::uint32_t n = random.below(30); n > 0; --n) {
      const char *piece = pieces[random.below(kinds)];
      if (random.below(40) != 0 && piece[0] == '\\' && piece[1] == 'u' && piece[4] == '\0')
        continue;
      text += piece;
    }
    if (random.below(8) != 0) text += '"';
    if (random.below(2) != 0) text += std::string(random.below(40), '\xBF');
    const std::vector<char> exact(text.begin(), text.end());
    const char *p = exact.data();
    const char *end = p + exact.size();
    json::Fault expected;
    const char *answer = variants.list[variants.count - 1].function(p, end, &expected);
    for (unsigned i = 0; i + 1 < variants.count; ++i) {
      json::Fault fault;
      INFO(variants.list[i].name << " " << text);
      REQUIRE(variants.list[i].function(p, end, &fault) == answer);
      REQUIRE(fault.at == expected.at);
      REQUIRE(std::string_view(fault.what) == expected.what);
    }
    json::Fault fault;
    REQUIRE(json::string_end(p, end, &fault) == answer);
  }
}

// Returns 1 if the variant and utf8_length() disagree about the sequence, and 0 otherwise.
static int wrong_utf8(json::StringEnd function, const std::string &sequence, std::size_t before) {
  const std::string text =
      std::string(before, 'x') + sequence + "\" and more text that follows here";
  const char *end = text.data() + text.size();
  const char *close = text.data() + before + sequence.size();
  bool expected = true;
  for (const char *p = text.data() + before; p < close && expected;) {
    const std::size_t n = bh::utf8_length({p, static_cast<std::size_t>(end - p)});
    expected = n != 0;
    p += n;
  }
  json::Fault fault;
  return (function(text.data(), end, &fault) == close + 1) == expected ? 0 : 1;
}

TEST_CASE("UTF-8: all variants agree on every short sequence") {
  const json::StringEndVariants variants = json::string_end_variants();
  for (unsigned i = 0; i < variants.count; ++i) {
    INFO(variants.list[i].name);
    int wrong = 0;
    for (int a = 0x80; a < 0x100; ++a) {
      for (int b = 0x23; b < 0x100; b += b < 0x7F ? 23 : 1) {
        if (b == '\\') continue;
        wrong += wrong_utf8(variants.list[i].function, {char(a), char(b)}, 30);
        for (const int c : {0x30, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xE1, 0xFF}) {
          wrong += wrong_utf8(variants.list[i].function, {char(a), char(b), char(c)}, 29);
          for (const int d : {0x30, 0x80, 0xBF, 0xC0, 0xF1}) {
            wrong +=
                wrong_utf8(variants.list[i].function, {char(a), char(b), char(c), char(d)}, 31);
          }
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("simdjson and RapidJSON agree on which texts are valid") {
  RandomJson random(20251101);
  simdjson::dom::parser parser;
  int valid = 0;
  int invalid = 0;
  for (int round = 0; round < 60000; ++round) {
    std::string text = random.space() + random.value(5) + random.space();
    if (round % 3 != 0) text = random.mutate(text);
    const bool ours = valid_json(text);
    INFO(text);
    const Verdict simd = bulkhead::mcp::testing::ask_simdjson(&parser, text);
    const Verdict rapid = bulkhead::mcp::testing::ask_rapidjson(text);
    if (simd != Verdict::unsure) REQUIRE(ours == (simd == Verdict::valid));
    if (rapid != Verdict::unsure) REQUIRE(ours == (rapid == Verdict::valid));
    if (rapid == Verdict::valid) ++valid;
    if (rapid == Verdict::invalid) ++invalid;
  }
  CHECK(valid > 5000);
  CHECK(invalid > 5000);
}

TEST_CASE("duplicate members are found at any depth") {
  for (const char *text :
       {R"({"a":1,"a":2})", R"([{"b":{"a":1,"\u0061":2}}])", R"({"x":[1,{"":1,"":1}]})",
        R"({"n\u0061me":1,"name":2})", R"({"\ud800":1,"\ud801":2})", R"({"a":{"a":1},"b":2,"a":3})",
        R"({"a":[{"a":1},{"a":2}],"b":1,"b":1})",
        R"({"\ud83d\ude00":1,")"
        "\xF0\x9F\x98\x80"
        R"(":1})"}) {
    INFO(text);
    REQUIRE(valid_json(text));
    CHECK(has_duplicate_members(text));
  }
  for (const char *text : {"1", "[]", "{}", R"({"a":1,"A":2})", R"({"a":{"a":{"a":"a"}}})",
                           R"("a")", R"([{"a":1},{"a":1}])", R"({"a":"b","b":"a","c":["a","a"]})",
                           R"({"a\"":1,"a":2,"a\\":3})", R"({"a":",\"a\":1"})"}) {
    INFO(text);
    REQUIRE(valid_json(text));
    CHECK_FALSE(has_duplicate_members(text));
  }
}

TEST_CASE("a name with escapes is unescaped only once") {
  constexpr std::size_t count = 1000;
  const std::string front(180, 'a');
  std::vector<std::string> tokens;
  std::size_t characters = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(1000 + i * 7919 % count);
    tokens.push_back(front + "\\u0041" + number);
    characters += front.size() + 1 + number.size();
  }
  std::string object = "{";
  for (const std::string &token : tokens)
    object += (object.size() > 1 ? ",\"" : "\"") + token + "\":0";
  bulkhead::mcp::json::OpenNames names(object);
  names.open_object();
  for (const std::string &token : tokens) names.add(token);
  CHECK_FALSE(names.close_object());
  CHECK(names.unescaped_characters() == characters);
  REQUIRE(valid_json(object + "}"));
  CHECK_FALSE(has_duplicate_members(object + "}"));
  CHECK(has_duplicate_members(object + ",\"" + front + "A1500\":0}"));
}

TEST_CASE("text with mismatched brackets has no duplicate members") {
  for (const char *text : {"[}", "{]", "[{]}", "}", "{\"a\":[}"}) {
    INFO(text);
    CHECK_FALSE(has_duplicate_members(text));
  }
}

TEST_CASE("strings are quoted and unquoted") {
  std::string scratch;
  CHECK(unquote("\"\"", &scratch).empty());
  CHECK(unquote("\"plain\"", &scratch) == "plain");
  CHECK(unquote(R"("a\n\t\"\\\/\b\f\rz")", &scratch) == "a\n\t\"\\/\b\f\rz");
  CHECK(unquote(R"("\u0041\u00e9\u20AC\ud83d\ude00")", &scratch) ==
        "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(unquote(R"("\ud83d-\ude00\ud83d")", &scratch) == "\xEF\xBF\xBD-\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(unquote(R"("\u0000")", &scratch) == std::string_view("\0", 1));
  CHECK(unquote("17", &scratch).empty());

  const auto quoted = [](std::string_view text) {
    std::string out = ">";
    bh::json::append_quoted(&out, text);
    return out.substr(1);
  };
  CHECK(quoted("") == "\"\"");
  CHECK(quoted("a\"b\\c\n\r\t\x01\x1F\x7F/") == "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u001f\x7F/\"");
  CHECK(quoted("\xC3\xA9\xF0\x9F\x98\x80") == "\"\xC3\xA9\xF0\x9F\x98\x80\"");
  CHECK(quoted("a\xFF"
               "b\xC3") ==
        "\"a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD\"");

  RandomJson random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (std::uint32_t n = random.below(60); n > 0; --n) bytes += char(random.below(256));
    const std::string token = quoted(bytes);
    REQUIRE(valid_json(token));
    const std::string once(unquote(token, &scratch));
    REQUIRE(quoted(once) == token);
  }
}

TEST_CASE("members and items are found") {
  const std::string object = R"( { "a" : 1 , "b":{"a":2}, "n\u0061me" : [ 1 , "x]" ] ,"e":""} )";
  CHECK(member(object, "a") == "1");
  CHECK(member(object, "b") == R"({"a":2})");
  CHECK(member(object, "name") == R"([ 1 , "x]" ])");
  CHECK(member(object, "e") == "\"\"");
  CHECK(member(object, "none").empty());
  CHECK(member("[]", "a").empty());
  CHECK(member("{}", "").empty());
  CHECK(member(R"({"":7})", "") == "7");

  struct Seen {
    std::vector<std::string> texts;
    std::size_t stop = 100;
  } seen;
  const auto on_item = [](void *arg, std::string_view item) {
    auto *s = static_cast<Seen *>(arg);
    s->texts.emplace_back(item);
    return s->texts.size() < s->stop;
  };
  CHECK(for_each_item(R"([ 1 ,"a,b" , [2,3],{} ])", &seen, on_item));
  CHECK(seen.texts == std::vector<std::string>{"1", "\"a,b\"", "[2,3]", "{}"});
  CHECK(for_each_item("[ ]", &seen, on_item));
  CHECK(seen.texts.size() == 4);
  seen = {{}, 2};
  CHECK_FALSE(for_each_element("[1,2,3]", &seen, on_item));
  CHECK(seen.texts.size() == 2);

  seen = {};
  const auto on_member = [](void *arg, std::string_view key, std::string_view value) {
    static_cast<Seen *>(arg)->texts.push_back(std::string(key) + "=" + std::string(value));
    return true;
  };
  CHECK(for_each_member(object, &seen, on_member));
  CHECK(seen.texts == std::vector<std::string>{R"("a"=1)", R"("b"={"a":2})",
                                               R"("n\u0061me"=[ 1 , "x]" ])", R"("e"="")"});
}
