// Generates random JSON for tests. The same seed produces the same output with the same compiler.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace bulkhead::mcp::testing {

class RandomJson {
 public:
  explicit RandomJson(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_()) % n; }

  std::string space() {
    static constexpr const char *choices[] = {"", "", "", " ", "\n  ", "\t", "\r\n"};
    return choices[below(std::size(choices))];
  }

  std::string number() {
    static constexpr const char *odd[] = {"1e400",
                                          "-0.0",
                                          "-0",
                                          "123456789012345678901234567890",
                                          "1E+2",
                                          "0.1e-300",
                                          "-1e-999",
                                          "9007199254740993",
                                          "18446744073709551616",
                                          "3.141592653589793238462643383279"};
    return below(3) == 0 ? odd[below(std::size(odd))] : std::to_string(below(100000));
  }

  std::string string() {
    static constexpr const char *pieces[] = {"a",
                                             "name",
                                             "\\\"",
                                             "\\\\",
                                             "\\n",
                                             "\\u0041",
                                             "\\ud83d\\ude00",
                                             "\\ud800",
                                             "\xC3\xA9",
                                             "\xE2\x82\xAC",
                                             "\xF0\x9F\x98\x80",
                                             "\\/",
                                             "The quick brown fox jumps over the lazy dog",
                                             "{",
                                             "}",
                                             ",",
                                             ":",
                                             "[",
                                             " "};
    std::string text = "\"";
    for (std::uint32_t n = below(9); n > 0; --n) text += pieces[below(std::size(pieces))];
    return text + '"';
  }

  // There are few names, so duplicates are likely.
  std::string object(unsigned depth) {
    static constexpr const char *names[] = {"\"a\"", "\"name\"", "\"Name\"", "\"id\"", "\"b\""};
    std::string text = "{" + space();
    const std::uint32_t n = below(5);
    for (std::uint32_t i = 0; i < n; ++i) {
      if (i > 0) text += "," + space();
      text += below(4) == 0 ? string() : names[below(std::size(names))];
      text += space() + ":" + space() + value(depth) + space();
    }
    return text + "}";
  }

  std::string array(unsigned depth) {
    std::string text = "[" + space();
    const std::uint32_t n = below(5);
    for (std::uint32_t i = 0; i < n; ++i) {
      if (i > 0) text += "," + space();
      text += value(depth) + space();
    }
    return text + "]";
  }

  std::string value(unsigned depth) {
    static constexpr const char *words[] = {"true", "false", "null"};
    switch (below(depth == 0 ? 4 : 7)) {
      case 0:
        return words[below(3)];
      case 1:
        return number();
      case 2:
      case 3:
        return string();
      case 4:
        return array(depth - 1);
      default:
        return object(depth - 1);
    }
  }

  // Changes, removes or inserts a few bytes, or truncates the text.
  std::string mutate(std::string text) {
    static constexpr char bytes[] = "{}[],:\"\\ue0-+.1tfn \n\x01\x7F\x80\xBF\xC0\xE0\xED\xF0\xFF";
    for (std::uint32_t n = 1 + below(3); n > 0 && !text.empty(); --n) {
      const std::size_t at = below(static_cast<std::uint32_t>(text.size()));
      const char c = bytes[below(sizeof bytes - 1)];
      switch (below(4)) {
        case 0:
          text.erase(at, 1 + below(3));
          break;
        case 1:
          text.insert(at, 1, c);
          break;
        case 2:
          text.resize(at);
          break;
        default:
          text[at] = c;
      }
    }
    return text;
  }

 private:
  std::mt19937 random_;
};

}  // namespace bulkhead::mcp::testing
