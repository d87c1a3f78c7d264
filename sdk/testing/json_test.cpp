// Tests the SDK's JSON reader and writer.
#include <bulkhead/cpp/json.hpp>
#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace json = bh::json;

namespace {

std::string written(void (*write)(json::Writer &)) {
  std::string out;
  json::Writer writer(&out);
  write(writer);
  REQUIRE(writer.whole());
  REQUIRE(json::valid(out));
  return out;
}

bool refused(void (*write)(json::Writer &)) {
  std::string out;
  json::Writer writer(&out);
  write(writer);
  return !writer.whole();
}

template <class T>
std::string value(const T &v) {
  std::string out;
  json::append_value(&out, v);
  return out;
}

}  // namespace

TEST_CASE("strings are escaped") {
  CHECK(json::quoted("") == R"("")");
  CHECK(json::quoted("a\"\\/b") == R"("a\"\\/b")");
  CHECK(json::quoted("\b\f\n\r\t") == R"("\b\f\n\r\t")");
  CHECK(json::quoted(std::string("\0\x1f\x7f", 3)) == "\"\\u0000\\u001f\x7f\"");
  CHECK(json::quoted("aä€😀") == "\"aä€😀\"");
  CHECK(json::quoted("\xFFz\xED\xA0\x80") ==
        "\"\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  std::string out = "x";
  json::append_quoted(&out, "y");
  CHECK(out == "x\"y\"");
  for (const char32_t c : {U'\u200B', U'\U0001F600', U'\U0010FFFF'}) {
    std::string token = "\"", text;
    json::append_escaped(&token, c);
    bh::append_utf8(&text, c);
    CHECK(bh::is_utf8(token));
    CHECK(token.find_first_not_of("\"\\u0123456789abcdef") == std::string::npos);
    CHECK(json::unquote(token + '"') == text);
  }
}

TEST_CASE("bytes are escaped at each position in a machine word") {
  // The code checks eight bytes at a time, so each byte value is tested at each position in a word.
  for (int byte = 0; byte < 256; ++byte) {
    for (std::size_t at = 0; at < 24; ++at) {
      std::string text(24, 'x');
      text[at] = static_cast<char>(byte);
      const std::string token = json::quoted(text);
      if (!json::valid(token)) FAIL("byte " << byte << " at " << at << ": " << token);
      const std::string again = json::unquote(token);
      if (again != bh::repaired_utf8(text)) FAIL("byte " << byte << " at " << at << ": " << again);
    }
  }
}

TEST_CASE("values are written") {
  CHECK(value(0) == "0");
  CHECK(value(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(value(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(value(0.5) == "0.5");
  CHECK(value(std::numeric_limits<double>::infinity()) == "null");
  CHECK(value(std::numeric_limits<double>::quiet_NaN()) == "null");
  CHECK(value(true) == "true");
  CHECK(value(nullptr) == "null");
  CHECK(value("text") == R"("text")");
  CHECK(value(std::string("text")) == R"("text")");
  CHECK(value(json::Raw{"[1]"}) == "[1]");
  CHECK(value(std::vector<std::string>{"a", "b"}) == R"(["a","b"])");
  CHECK(value(std::vector<std::vector<int>>{{}, {1, 2}}) == "[[],[1,2]]");
  const char *pointer = "p";
  CHECK(value(pointer) == R"("p")");
}

TEST_CASE("objects and arrays are written") {
  CHECK(written([](json::Writer &w) {
          w.begin_object().member("name", "echo").member("calls", 3).key("tags").begin_array();
          w.value("a").value(true).begin_object().end_object().end_array();
          w.member("\"", json::Raw{"{}"}).end_object();
        }) == R"({"name":"echo","calls":3,"tags":["a",true,{}],"\"":{}})");
  CHECK(written([](json::Writer &w) { w.begin_array().end_array(); }) == "[]");
  CHECK(written([](json::Writer &w) { w.value("x"); }) == R"("x")");
  std::string object = "{";
  json::append_member(&object, "a", 1);
  json::append_member(&object, "b", "c");
  CHECK(object == R"({"a":1,"b":"c")");
}

TEST_CASE("invalid JSON is rejected") {
  CHECK(refused([](json::Writer &) {}));
  CHECK(refused([](json::Writer &w) { w.begin_object(); }));
  CHECK(refused([](json::Writer &w) { w.begin_object().value(1).end_object(); }));
  CHECK(refused([](json::Writer &w) { w.begin_object().key("a").end_object(); }));
  CHECK(refused([](json::Writer &w) { w.begin_object().key("a").key("b").value(1).end_object(); }));
  CHECK(refused([](json::Writer &w) { w.begin_object().end_array(); }));
  CHECK(refused([](json::Writer &w) { w.begin_array().key("a").value(1).end_array(); }));
  CHECK(refused([](json::Writer &w) { w.begin_array().end_object(); }));
  CHECK(refused([](json::Writer &w) { w.value(1).value(2); }));
  CHECK(refused([](json::Writer &w) { w.begin_array().end_array().begin_array().end_array(); }));
  CHECK(refused([](json::Writer &w) { w.end_array(); }));
  CHECK(refused([](json::Writer &w) { w.key("a"); }));
  const auto nested = [](std::uint32_t depth) {
    std::string out;
    json::Writer w(&out);
    for (std::uint32_t i = 0; i < depth; ++i)
      i % 2 == 0 ? w.begin_array() : w.begin_object().key("k");
    w.value(1);
    for (std::uint32_t i = depth; i-- > 0;) i % 2 == 0 ? w.end_array() : w.end_object();
    return w.whole();
  };
  CHECK(nested(json::Writer::max_depth));
  CHECK_FALSE(nested(json::Writer::max_depth + 1));
}

TEST_CASE("members and elements are found") {
  constexpr std::string_view text =
      R"( {"a" : 1,"b":[{"a":"}]"} , "x"],"\u0063":"d\"","e":null,"a":2} )";
  CHECK(json::member(text, "a") == "1");
  CHECK(json::member(text, "b") == R"([{"a":"}]"} , "x"])");
  CHECK(json::member(text, "c") == R"("d\"")");
  CHECK(json::member(text, "e") == "null");
  CHECK(json::member(text, "z").empty());
  CHECK(json::member_text(text, "c") == "d\"");
  CHECK(json::member_text(text, "a").empty());
  CHECK(json::member("[1]", "a").empty());
  std::vector<std::string> seen;
  CHECK(json::for_each_element(json::member(text, "b"), [&](std::string_view each) {
    seen.emplace_back(each);
    return true;
  }));
  CHECK(seen == std::vector<std::string>{R"({"a":"}]"})", R"("x")"});
  int count = 0;
  const auto one = [&](std::string_view) { return ++count < 1; };
  CHECK(json::for_each_element("[1,2,3]", one));
  CHECK(count == 1);
  CHECK(json::for_each_member("{ }", [](std::string_view, std::string_view) { return true; }));
  CHECK(json::for_each_element("[ ]", one));
  CHECK(count == 1);
  std::vector<std::string> keys;
  const auto up_to_b = [&](std::string_view key) {
    keys.emplace_back(key);
    return key != R"("b")";
  };
  CHECK(json::for_each_member(R"({"a":[1,{"b":2}],"b":{"a value that is not read)", up_to_b));
  CHECK(keys == std::vector<std::string>{R"("a")", R"("b")"});
  CHECK_FALSE(json::for_each_member(R"({"a":[1)", up_to_b));
}

TEST_CASE("invalid JSON is not read beyond its end") {
  const std::string whole = R"({"a":{"b":["c\\",{"d":-1.5e3}],"e":"\ud83d\ude00"},"f":[]})";
  const auto count = [](std::string_view text) {
    std::size_t n = 0;
    const bool well =
        json::for_each_member(text, [&](std::string_view key, std::string_view value) {
          n += 1 + json::unquote(key).size() + json::unquote(value).size();
          (void)json::for_each_element(value, [&](std::string_view) { return ++n != 0; });
          (void)json::member(value, "e");
          return true;
        });
    return well ? n : 0;
  };
  CHECK(count(whole) != 0);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    const std::string head(whole, 0,
                           n);  // a copy, so that a sanitizer detects reads beyond its end
    CAPTURE(head);
    CHECK_FALSE(json::valid(head));
    CHECK(count(head) == 0);
    for (const char c : std::string_view("{}[]\",:\\u0 x\xFF")) {
      std::string changed = whole;
      changed[n] = c;
      (void)count(changed);
    }
  }
  for (const std::string_view bad : {"\"", "\"\\", "\"\\\"", "\"\\u12\"", "\"\\uzzzz\"", "", "x"}) {
    (void)json::unquote(std::string(bad));
    CHECK_FALSE(json::valid(bad));
  }
}

TEST_CASE("tokens are converted to values") {
  CHECK(json::unquote(R"("\ud83d\ude00\t\u00e4\/")") == "😀\tä/");
  CHECK(json::unquote(R"("\ud800x\udc00")") == "\xEF\xBF\xBDx\xEF\xBF\xBD");
  CHECK(json::unquote("12").empty());
  CHECK(json::is_text(R"("\u0061b")", "ab"));
  CHECK_FALSE(json::is_text(R"("ab)", "ab"));
  CHECK(json::is_string(R"("")"));
  CHECK_FALSE(json::is_string("\""));
  std::uint32_t n = 7;
  CHECK(json::read_integer("4294967295", &n));
  CHECK(n == 4'294'967'295u);
  CHECK_FALSE(json::read_integer("4294967296", &n));
  CHECK_FALSE(json::read_integer("-1", &n));
  CHECK_FALSE(json::read_integer("1.0", &n));
  CHECK_FALSE(json::read_integer("", &n));
  CHECK(json::trimmed(" \t[1]\r\n") == "[1]");
}
