// Tests that references in the syntax of other clients are reported.
#include "profile/foreign_references.hpp"

#include <catch2/catch.hpp>

#include "profile/parse.hpp"

using namespace bulkhead;
using namespace bulkhead::profiles;

namespace {

std::vector<std::string> foreign_in(const std::string &json) {
  const std::vector<ProfileLayer> layers{{"file", "mcp.json", json}};
  Diagnostics diagnostics(layers);
  Node root;
  REQUIRE(parse_layer(layers.front(), 0, {}, &root, diagnostics));
  std::vector<std::string> out;
  for (const ForeignReference &one : foreign_references(root)) {
    CHECK(one.place.line >= 1);
    out.push_back(one.path + ": " + one.what);
  }
  return out;
}

}  // namespace

TEST_CASE("Gemini's $NAME is reported with the remedy, wherever a value consists of it") {
  const std::string import = "; `bulkhead import` converts servers in Gemini CLI's settings";
  CHECK(foreign_in(R"({"httpUrl": "$URL_OF", "headers": {"Authorization": "Bearer $TICKS_TOKEN"},
                       "env": {"K": "$KEY_1"}})") ==
        std::vector<std::string>{
            "httpUrl: `$NAME` is not a reference here; write `${NAME}`" + import,
            "headers.Authorization: `$NAME` is not a reference here; write `${NAME}`" + import,
            "env.K: `$NAME` is not a reference here; write `${NAME}`" + import});
  const std::string in_args =
      " is not a reference here; references in args are not expanded: write the value itself, or "
      "pass it in env as ";
  CHECK(foreign_in(
            R"({"command": "x", "args": ["--key", "$API_KEY", "--t=$TOKEN", "-c", "$CMD"]})") ==
        std::vector<std::string>{"args[1]: `$NAME`" + in_args + "`${NAME}`",
                                 "args[2]: `$NAME`" + in_args + "`${NAME}`"});
}

TEST_CASE("VS Code's variables are reported where they are not expanded") {
  CHECK(foreign_in(R"({"command": "${workspaceFolder}/x", "args": ["a", "${userHome}/b"],
                       "cwd": "${workspaceFolder}"})")
            .size() == 3);
  CHECK(
      foreign_in(R"({"args": ["${workspaceFolder}"]})") ==
      std::vector<std::string>{
          "args[0]: `${workspaceFolder}` is not a reference here; write the path itself; `bulkhead "
          "import --folder` converts servers in .vscode/mcp.json"});
  CHECK(foreign_in(R"({"cwd": "${userHome}"})") ==
        std::vector<std::string>{
            "cwd: `${userHome}` is not a reference here; write the path itself"});
}

TEST_CASE("other values with dollar signs are not reported, because they may be passwords") {
  CHECK(foreign_in(R"({"env": {"A": "$ecret", "B": "cost 5$", "C": "$1", "D": "${TOKEN}",
                               "E": "$A$B", "F": "$", "G": "pa$WORD", "H": 5},
                       "args": ["${HOME}", "echo $HOME", "$x", ["$AB"]],
                       "unknown": "$NAME", "headers": 3})")
            .empty());
}
