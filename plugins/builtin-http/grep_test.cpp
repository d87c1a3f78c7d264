// Tests the line search of grep_http.
#include "builtin-http/grep.hpp"

#include <catch2/catch.hpp>

using namespace builtin_http;

namespace {

const std::atomic<bool> never{false};

Matches find(std::string_view text, std::string_view regex, std::size_t context = 0,
             std::size_t most = 50) {
  tool_kit::Pattern pattern;
  std::string problem;
  REQUIRE(pattern.parse("pattern", regex, tool_kit::Case::ignored, &problem));
  return find_matches(text, pattern, context, most, never);
}

}  // namespace

TEST_CASE("each matching line has a block, and matching is case-insensitive") {
  const Matches found = find("one\ntwo\r\nthree\nFour two\nfive", "TWO", 1);
  CHECK(found.count == 2);
  CHECK_FALSE(found.more);
  CHECK(found.blocks ==
        "--- Match 1 ---\n    1: one\n>>> 2: two\n    3: three\n\n"
        "--- Match 2 ---\n    3: three\n>>> 4: Four two\n    5: five\n\n");
  CHECK(find("", "a").count == 0);
  CHECK(find("a\n\nb", "^$").blocks == "--- Match 1 ---\n>>> 2: \n\n");
  CHECK(find("\xC3\x9C"
             "ber",
             "\xC3\xBC")
            .count == 1);
}

TEST_CASE("`more` is determined by searching for one match above the limit") {
  CHECK_FALSE(find("a\na\na", "a", 0, 3).more);
  const Matches found = find("a\na\na", "a", 0, 2);
  CHECK(found.more);
  CHECK(found.count == 2);
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::string(100'000, 'a') + "\n";
  const Matches large = find(text, "a", 100, 1000);
  CHECK(large.more);
  CHECK(large.blocks.size() < max_grep_bytes + 2 * text.size());
}
