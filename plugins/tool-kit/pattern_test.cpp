// Tests searches with untrusted regular expressions.
#include "tool-kit/pattern.hpp"

#include <catch2/catch.hpp>

using tool_kit::Case;
using tool_kit::Pattern;

namespace {

const auto never = [] { return false; };

Pattern parsed(std::string_view text, Case letters = Case::counts) {
  Pattern pattern;
  std::string problem;
  REQUIRE(pattern.parse("p", text, letters, &problem));
  return pattern;
}

// Returns the error of a pattern, or an empty string if the pattern is valid.
std::string problem_of(std::string_view text) {
  Pattern pattern;
  std::string problem;
  return pattern.parse("p", text, Case::counts, &problem) ? std::string() : problem;
}

// A pattern that executes the maximum number of steps per byte.
constexpr const char *laborious = "[a-q][^u-z]{500}x";

}  // namespace

TEST_CASE("invalid patterns are rejected, and catastrophic backtracking does not occur") {
  CHECK(problem_of("") == "the argument \"p\" must not be empty");
  CHECK(problem_of(std::string(5000, 'a')) == "the argument \"p\" is longer than 4096 bytes");
  CHECK(problem_of("(a").find("invalid regular expression: missing") == 0);
  CHECK(problem_of("((a{1000}){1000}){1000}").find("invalid regular expression") == 0);
  CHECK(problem_of("(?=a)").find("no lookaround") != std::string::npos);
  CHECK_FALSE(parsed("(a+)+$").finds(std::string(100'000, 'a') + "!", never));
}

TEST_CASE("patterns can be case-insensitive") {
  CHECK_FALSE(parsed("\xC3\xBC")
                  .finds("\xC3\x9C"
                         "ber",
                         never));
  CHECK(parsed("\xC3\xBC", Case::ignored)
            .finds("\xC3\x9C"
                   "ber",
                   never));
}

TEST_CASE("a long line is searched in windows, and matches across boundaries are found") {
  const Pattern pattern = parsed(laborious);
  const std::string match = "a" + std::string(500, 'b') + "x";
  int asked = 0;
  const auto count = [&] {
    ++asked;
    return false;
  };
  for (const std::size_t at : {0u, 7'500u, 8'000u, 8'192u, 12'345u, 99'498u}) {
    std::string line(100'000, 'z');
    line.replace(at, match.size(), match);
    line.resize(100'000);
    CHECK(pattern.finds(line, count));
  }
  asked = 0;
  CHECK_FALSE(pattern.finds(std::string(100'000, 'b'), count));
  CHECK(asked >= 10);
}

TEST_CASE("anchors match at the ends of a long line, but not of a window") {
  const std::string line = "b" + std::string(5u << 20, 'a') + "c";
  CHECK_FALSE(parsed("^a").finds(line, never));
  CHECK_FALSE(parsed("a$").finds(line, never));
  CHECK_FALSE(parsed("\\ba|a\\b").finds(line, never));
  CHECK(parsed("^b").finds(line, never));
  CHECK(parsed("c$").finds(line, never));
  CHECK_FALSE(parsed("^$").finds(line, never));
  CHECK(parsed("^$").finds("", never));
}

TEST_CASE("a search stops when must_stop returns true") {
  int asked = 0;
  const auto now = [&] {
    ++asked;
    return true;
  };
  CHECK_FALSE(
      parsed(laborious).finds(std::string(1u << 20, 'b') + "a" + std::string(500, 'b') + "x", now));
  CHECK(asked == 1);
}
