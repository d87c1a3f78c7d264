#include "mcp/value_digest.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bulkhead/cpp/json_writer.hpp"

using namespace bulkhead::mcp;

namespace {

using Random = std::minstd_rand;

// Writes a random value. The first seed determines the value, and the second seed determines how it
// is spelled.
class Speller {
 public:
  Speller(unsigned value, unsigned spelling) : value_(value), spelling_(spelling) {}

  std::string write(unsigned depth = 0) {
    const std::string text = space() + element(depth);
    return text + space();
  }

 private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(value_() / 7 % n); }
  unsigned choose(unsigned n) { return static_cast<unsigned>(spelling_() / 7 % n); }
  std::string space() { return std::string(choose(3), " \t\n\r"[choose(4)]); }

  std::string element(unsigned depth) {
    switch (pick(depth < 5 ? 7 : 4)) {
      case 0:
        return pick(2) == 0 ? "null" : pick(2) == 0 ? "true" : "false";
      case 1:
        return number();
      case 2:
      case 3:
        return string();
      case 4:
        return array(depth);
      default:
        return object(depth);
    }
  }
  std::string number() {
    const std::string digits = std::to_string(pick(1000));
    switch (choose(3)) {
      case 0:
        return digits;
      case 1:
        return digits + "." + std::string(1 + choose(3), '0');
      default:
        return digits + std::string(2, '0') + "E-0" + "2";
    }
  }
  std::string string() { return '"' + text() + '"'; }
  std::string text() {
    std::string out;
    for (unsigned n = pick(6); n > 0; --n) {
      const char32_t c = U"ab\"\\\n\u00e9\u4e16\U0001F600"[pick(8)];
      if (choose(2) == 0) {
        bh::json::append_escaped(&out, c);
      } else {
        std::string plain;
        bh::append_utf8(&plain, c);
        const std::string quoted = bh::json::quoted(plain);
        out += quoted.substr(1, quoted.size() - 2);
      }
    }
    return out;
  }
  std::string array(unsigned depth) {
    std::string out;
    for (unsigned n = pick(4); n > 0; --n) out += (out.empty() ? "" : ",") + write(depth + 1);
    return "[" + out + space() + "]";
  }
  std::string object(unsigned depth) {
    std::vector<std::string> members;
    for (unsigned n = pick(5); n > 0; --n) {
      members.push_back(space() + '"' + text() + std::to_string(n) + '"' + space() + ":" +
                        write(depth + 1));
    }
    std::shuffle(members.begin(), members.end(), spelling_);
    std::string out;
    for (const std::string &member : members) out += (out.empty() ? "" : ",") + member;
    return "{" + out + space() + "}";
  }

  Random value_, spelling_;
};

}  // namespace

TEST_CASE("value digest: spellings of one value are equal, different values are not") {
  const std::vector<std::vector<std::string>> values = {
      {"{}", " { } ", "\t{\n}\r"},
      {"[]", "[ ]"},
      {"[[]]"},
      {"[[],[]]"},
      {"[{}]"},
      {R"({"a":1,"b":[true,null]})", R"({ "b" : [ true , null ] , "\u0061" : 1.0 })",
       R"({"b":[true,null],"a":10e-1})"},
      {R"({"a":1,"b":[null,true]})"},  // the order of elements matters
      {R"({"a":1})"},
      {R"({"a":"1"})"},
      {R"({"a":[1]})"},
      {R"({"a":{"a":1}})"},
      {R"({"A":1})"},
      {R"({"b":1})"},
      {R"([{"a":1},{"b":2}])"},
      {R"([{"a":1,"b":2}])", R"([{"b":2,"a":1}])"},
      {R"([{"a":1},{},{"b":2}])"},
      {R"({"a":1,"b":2})", R"({"b":2,"a":1})"},
      {R"({"a":2,"b":1})", R"({"b":1,"a":2})"},
      {R"(["a","b"])"},
      {R"(["ab"])"},
      {R"(["a,b"])"},
      {R"(["a\",\"b"])"},
      {R"("\u00e9")", "\"\u00e9\"", R"("\u00E9")"},
      {R"("e\u0301")"},  // not normalized
      {R"("\ud83d\ude00")", "\"\U0001F600\""},
      {R"("/")", R"("\/")"},
      {R"("\u0000")"},
      {R"("")"},
      {"0", "-0", "0.00", "0e5"},
      {"null"},
      {"true"},
      {"false"},
      {R"("true")"},
      {R"("t")"},
      {"1", "1.0", "1e0"},
      {"-1"},
      {"0.1", "1e-1"},
      {"0.1000000000000000055"},
      {"9007199254740993"},
      {"9007199254740992"},
      {"1e400"},
      {"1e99999999999999999999"},
      {"1.0e99999999999999999999"},  // too long to be evaluated
      {"12"},
      {"[1,2]"}};
  std::map<ValueDigest, std::size_t> seen;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const std::string &text : values[i]) {
      INFO(text);
      const auto digest = value_digest(text);
      REQUIRE(digest);
      const auto [entry, added] = seen.emplace(*digest, i);
      CHECK(entry->second == i);
    }
  }
  CHECK(seen.size() == values.size());
}

TEST_CASE("value digest: members with one name keep their order") {
  CHECK(value_digest(R"({"a":1,"a":2})") != value_digest(R"({"a":2,"a":1})"));
  CHECK(value_digest(R"({"a":1,"\u0061":2})") != value_digest(R"({"\u0061":2,"a":1})"));
  CHECK(value_digest(R"({"a":1,"\u0061":2})") == value_digest(R"({"\u0061":1,"a":2})"));
  CHECK(value_digest(R"({"a":1,"b":0,"a":2})") == value_digest(R"({"b":0,"a":1,"a":2})"));
  CHECK(value_digest(R"({"a":1,"a":1})") != value_digest(R"({"a":1})"));
}

TEST_CASE("value digest: a text that is too large for the reactor thread is compared as written") {
  const auto object = [](std::size_t members, std::string_view space) {
    std::string out = "{";
    for (std::size_t i = 0; i < members; ++i) {
      if (out.size() > 1) out.append(",").append(space);
      out.append("\"").append(std::to_string(i)).append("\":1");
    }
    return out + "}";
  };
  CHECK(value_digest(object(4000, "")) == value_digest(object(4000, " ")));
  CHECK(value_digest(object(5000, "")) != value_digest(object(5000, " ")));
  CHECK(value_digest(object(5000, "")) == value_digest(object(5000, "")));
  const std::string text(max_canonical_bytes, 'x');
  CHECK(value_digest("[\"" + text + "\"]") != value_digest("[\"" + text + "\" ]"));
  CHECK(value_digest("[\"" + text + "\"]") == value_digest("[\"" + text + "\"]"));
  CHECK(value_digest("[\"" + text.substr(8) + "\"]") ==
        value_digest("[ \"" + text.substr(8) + "\"]"));
}

TEST_CASE("value digest: lone surrogates are distinct") {
  const std::vector<std::string> texts = {R"("\ud800")",       R"("\udfff")", R"("\ufffd")",
                                          R"("\ud800\ud800")", "\"\uFFFD\"",  R"("\ud800x")"};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      INFO(texts[i] << " " << texts[k]);
      CHECK(value_digest(texts[i]) != value_digest(texts[k]));
    }
  }
  CHECK(value_digest(R"({"\ud800":1})") != value_digest(R"({"\ud801":1})"));
}

TEST_CASE("value digest: random values in random spellings") {
  std::map<ValueDigest, std::string> seen;
  unsigned different = 0;
  for (unsigned value = 1; value <= 300; ++value) {
    const auto first = value_digest(Speller(value, 1).write());
    REQUIRE(first);
    different += seen.emplace(*first, "").second ? 1 : 0;
    for (unsigned spelling = 2; spelling < 8; ++spelling) {
      const std::string text = Speller(value, spelling).write();
      INFO(text);
      REQUIRE(value_digest(text) == first);
    }
  }
  CHECK(different > 150);  // the other values are small and occur often
}

TEST_CASE("value digest: any changed token changes it") {
  const std::string text = R"({"path":"/a/b","deep":[{"x":[1,2,{"y":null}]},"z"],"n":-1.5e3})";
  const auto digest = value_digest(text);
  REQUIRE(digest);
  unsigned changed = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char c : {'0', '7', 'q', ',', '"', ']', '}', ' '}) {
      std::string other = text;
      if (other[i] == c) continue;
      other[i] = c;
      const auto of_other = value_digest(other);
      if (!of_other) continue;
      INFO(other);
      CHECK(of_other != digest);
      ++changed;
    }
  }
  CHECK(changed > 30);
}

TEST_CASE("value digest: limits and invalid text") {
  const auto nested = [](std::size_t levels) {
    std::string text;
    for (std::size_t i = 0; i < levels; ++i) text += i % 2 == 0 ? "[" : R"({"a":)";
    text += "1";
    for (std::size_t i = levels; i > 0; --i) text += i % 2 == 1 ? "]" : "}";
    return text;
  };
  CHECK(value_digest(nested(128)));
  CHECK(value_digest(nested(126)) != value_digest(nested(128)));
  CHECK_FALSE(value_digest(nested(129)));
  for (const char *bad : {"", "{", "[1,]", "01", "\"\xFF\"", "1 2", "nul", "{\"a\"}"}) {
    CHECK_FALSE(value_digest(bad));
  }
  std::string wide = "{";
  for (int i = 0; i < 4000; ++i) wide += '"' + std::to_string(i * 7919 % 4000) + "\":0,";
  wide.back() = '}';
  std::string sorted = "{";
  for (int i = 0; i < 4000; ++i) sorted += '"' + std::to_string(i) + "\":0,";
  sorted.back() = '}';
  CHECK(value_digest(wide) == value_digest(sorted));
}
