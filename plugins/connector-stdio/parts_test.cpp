// Tests Tail, RotatedFile and the detection of credentials.
#include <unistd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "connector-stdio/definition.hpp"
#include "connector-stdio/stderr_log.hpp"

using namespace connector_stdio;

TEST_CASE("the tail contains the last eight lines, newest last") {
  Tail tail;
  REQUIRE(tail.text(400).empty());
  for (int i = 0; i < 20; ++i) tail.add("line " + std::to_string(i) + "\n\n");
  REQUIRE(tail.text(400) ==
          "line 12 | line 13 | line 14 | line 15 | line 16 | line 17 | line 18 | line 19");
  REQUIRE(tail.text(20) == "line 18 | line 19");
}

TEST_CASE("the tail contains the error but no stack frames") {
  Tail tail;
  tail.add("starting\nnode:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\n");
  tail.add("Error: Cannot find module '/x/server.js'\n");
  for (int i = 0; i < 12; ++i)
    tail.add("    at Module._load (node:internal/loader:" + std::to_string(i) + ")\n");
  tail.add(
      "    at node:internal/main:28:49 {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\n");
  tail.add("Node.js v20.20.2\n");
  const std::string text = tail.text(400);
  CHECK(text.starts_with("Error: Cannot find module '/x/server.js' | "));
  CHECK(text.ends_with("Node.js v20.20.2"));
  CHECK(text.find("Module._load") == std::string::npos);
  SECTION("with limited space") {
    CHECK(tail.text(45) == "Error: Cannot find module '/x/server.js'");
  }
  SECTION("with several errors, the last error comes first") {
    tail.add("TypeError [ERR_X]: no\n    at g (h:1)\n");
    CHECK(tail.text(400) == "TypeError [ERR_X]: no");
  }
}

TEST_CASE("the size of the tail is limited, regardless of how the input is split") {
  Tail tail;
  tail.add(std::string(100'000, 'x'));
  tail.add("\nend");
  REQUIRE(tail.text(4000).size() <= Tail::max_bytes);
  REQUIRE(tail.text(4000).ends_with("end"));
}

TEST_CASE("credentials in arguments and environment are detected, regardless of case") {
  Definition d;
  bh_error error{};
  REQUIRE(parse_definition("s", R"({"command":"x","env":{"api_key":"k1k","Mode":"fast"},
      "args":["--token","t0k","--Api-Key=a1b","-v","--header","Authorization: Bearer b3a",
              "postgres://me:pw1@db/x","/a/long/path/of/a/file","--pass","--verbose"]})",
                           &d, &error) == BH_OK);
  std::sort(d.hidden.begin(), d.hidden.end());
  REQUIRE(d.hidden == std::vector<std::string>{"Bearer b3a", "a1b", "b3a", "k1k", "pw1", "t0k"});
}

TEST_CASE("a log file and its predecessor are limited in size") {
  char folder[] = "/tmp/bulkhead-rotate-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/log";
  int error = 0;
  {
    RotatedFile file(path, 10);
    REQUIRE(file.write("12345", &error));
    REQUIRE(file.write("67890", &error));
    REQUIRE(std::filesystem::file_size(path) == 10);
    REQUIRE(file.write("abc", &error));
    REQUIRE(std::filesystem::file_size(path) == 3);
    REQUIRE(std::filesystem::file_size(path + ".1") == 10);
    REQUIRE(file.write("0123456789ABCDEF", &error));
  }
  std::string text;
  std::ifstream(path) >> text;
  REQUIRE(text == "6789ABCDEF");
  RotatedFile again(path, 12);  // a new run appends to the existing file
  REQUIRE(again.write("xyz", &error));
  REQUIRE(std::filesystem::file_size(path) == 3);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a symbolic link at the path of the log file is not followed") {
  char folder[] = "/tmp/bulkhead-link-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/log";
  REQUIRE(::symlink("target", path.c_str()) == 0);
  RotatedFile file(path, 100);
  int error = 0;
  REQUIRE_FALSE(file.write("x", &error));
  REQUIRE(error == ELOOP);
  REQUIRE_FALSE(std::filesystem::exists(std::string(folder) + "/target"));
  std::filesystem::remove_all(folder);
}
