#include "common/suggestion.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead::program;

TEST_CASE("similar names are suggested for a mistyped name") {
  const std::vector<std::string> tools = {"files__file_read", "files__file_write", "files__list",
                                          "github__create_issue", "http__fetch_http"};
  CHECK(suggestion("files__file_raed", tools) == "did you mean \"files__file_read\"?");
  CHECK(suggestion("files__read", tools) == "did you mean \"files__file_read\"?");
  CHECK(suggestion("Create_Issue", tools) == "did you mean \"github__create_issue\"?");
  CHECK(suggestion("file", tools) ==
        "did you mean \"files__file_read\", \"files__file_write\" or \"files__list\"?");
  CHECK(suggestion("statsu", {"status", "stdio"}) == "did you mean \"status\"?");
  CHECK(suggestion("wrok", {"vault", "work"}) == "did you mean \"work\"?");
  CHECK(suggestion("Wokr", {"vault", "work"}) == "did you mean \"work\"?");
  CHECK(suggestion("owkr", {"vault", "work"}).empty());
  for (const char *none : {"", "_", "x", "zzzzzz", "files__delete"}) {
    INFO(none);
    CHECK(suggestion(none, tools).empty());
  }
  CHECK(suggestion("files", {}).empty());
  CHECK(suggestion("ab\033", {"ab\033c"}) == "did you mean \"ab?c\"?");
  CHECK(similar_names(std::string(100'000, 'a'), tools).empty());
}
