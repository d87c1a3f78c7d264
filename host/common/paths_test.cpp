#include "common/paths.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>

#include "common/test_folder.hpp"

using namespace bulkhead::program;

TEST_CASE("a link in front of .. in a variable has no effect after the start") {
  const TestFolder folder;
  const std::string at = std::filesystem::canonical(folder.path).string();
  std::filesystem::create_directories(at + "/one/conf");
  std::filesystem::create_directories(at + "/two/conf");
  std::filesystem::create_directories(at + "/one/inner");
  std::filesystem::create_directories(at + "/two/inner");
  std::filesystem::create_directory_symlink("one/inner", at + "/link");
  for (const char *name : {"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME"}) {
    INFO(name);
    const char *before = std::getenv(name);
    const std::string was = before == nullptr ? "" : before;
    ::setenv(name, (at + "/link/../conf").c_str(), 1);
    remove_parent_steps_from_environment();
    CHECK(std::getenv(name) == at + "/one/conf");
    ::setenv(name, (at + "/missing/../conf").c_str(), 1);
    remove_parent_steps_from_environment();
    CHECK(std::getenv(name) == at + "/conf");
    // A path without ".." and a relative path are not changed.
    for (const std::string &same : {at + "/link/conf", std::string("../conf")}) {
      ::setenv(name, same.c_str(), 1);
      remove_parent_steps_from_environment();
      CHECK(std::getenv(name) == same);
    }
    before == nullptr ? ::unsetenv(name) : ::setenv(name, was.c_str(), 1);
  }
}
