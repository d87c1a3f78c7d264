// The parts that stand alone: the last lines, the rotated file.
#include <unistd.h>
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "connector-stdio/stderr_log.hpp"

using namespace connector_stdio;

TEST_CASE("the tail keeps the last eight lines, newest last") {
  Tail tail;
  REQUIRE(tail.text({}, 400).empty());
  for (int i = 0; i < 20; ++i) tail.add("line " + std::to_string(i) + "\n\n");
  REQUIRE(tail.text({}, 400) ==
          "line 12 | line 13 | line 14 | line 15 | line 16 | line 17 | line 18 | line 19");
  REQUIRE(tail.text({}, 20) == "line 18 | line 19");
}

TEST_CASE("the tail is bounded, however much and in whatever pieces it comes") {
  Tail tail;
  tail.add(std::string(100'000, 'x'));
  tail.add("\nend");
  REQUIRE(tail.text({}, 4000).size() <= Tail::max_bytes);
  REQUIRE(tail.text({}, 4000).ends_with("end"));
}

TEST_CASE("the tail hides values, also one that came in two pieces") {
  Tail tail;
  tail.add("token=abc");
  tail.add("def123 refused\n");
  REQUIRE(tail.text({"abcdef123"}, 400) == "token=*** refused");
}

TEST_CASE("a secret that the bound has cut is not shown in part") {
  Tail tail;
  tail.add("SECRETSECRET");
  tail.add(std::string(2040, '-') + "\nlast\n");
  REQUIRE(tail.text({"SECRETSECRET"}, 400) == "last");
}

TEST_CASE("a rotated file holds at most its bound, and the one before") {
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
  RotatedFile again(path, 12);  // goes on where the last run stopped
  REQUIRE(again.write("xyz", &error));
  REQUIRE(std::filesystem::file_size(path) == 3);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a link in the place of the file is not followed") {
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
