// Tests the creation of plugins with the SDK's templates. sdk/tests/package.sh builds the results.
#include "kit/new_plugin.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/test_folder.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace fs = std::filesystem;

namespace {

std::string content(const std::string &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has(const std::string &text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string error_of(const NewPlugin &wanted) {
  const auto made = create_plugin(wanted);
  return made ? "" : made.error().text;
}

}  // namespace

TEST_CASE("every template becomes a plugin with the new name and without the old one") {
  std::size_t templates = 0;
  for (const auto &entry : fs::directory_iterator(TEST_TEMPLATES)) {
    const std::string folder_name = entry.path().filename();
    INFO(folder_name);
    const std::size_t dash = folder_name.rfind('-');
    const std::string language = folder_name.substr(dash) == "-c" ? "c" : "c++";
    const TestFolder folder;
    const auto made = create_plugin(
        {TEST_TEMPLATES, folder / "out", folder_name.substr(0, dash), language, "my-new-plugin"});
    REQUIRE(made.has_value());
    const std::string source = language == "c" ? "my_new_plugin.c" : "my_new_plugin.cpp";
    for (const std::string &name :
         {std::string("CMakeLists.txt"), std::string("README.md"), std::string("gateway.toml"),
          source, std::string("my_new_plugin_test.cpp")}) {
      INFO(name);
      CHECK(std::find(made->begin(), made->end(), name) != made->end());
    }
    CHECK(std::is_sorted(made->begin(), made->end()));
    for (const std::string &name : *made) {
      INFO(name);
      const std::string text = content(folder / ("out/" + name));
      CHECK_FALSE(text.empty());
      CHECK_FALSE(has(text, "hello-"));
      CHECK_FALSE(has(text, "hello_"));
      CHECK_FALSE(has(text, "Hello"));
      struct stat status{};
      REQUIRE(::stat((folder / ("out/" + name)).c_str(), &status) == 0);
      CHECK((status.st_mode & 022) == 0);  // the gateway rejects files that others can write
    }
    CHECK(has(content(folder / "out/CMakeLists.txt"), "bh_add_plugin(my-new-plugin " + source));
    CHECK(has(content(folder / ("out/" + source)), "\"my-new-plugin\""));
    if (language == "c++") {
      CHECK(has(content(folder / ("out/" + source)), "BH_PLUGIN(MyNewPluginPlugin)"));
    }
    CHECK(has(content(folder / "out/gateway.toml"), "./build/my-new-plugin.so"));
    ++templates;
  }
  CHECK(templates >= 10);
}

TEST_CASE("the target may be an empty folder, but nothing is overwritten") {
  const TestFolder folder;
  NewPlugin wanted{TEST_TEMPLATES, folder / "out", "tools", "c++", "mine"};
  fs::create_directory(wanted.target);
  REQUIRE(create_plugin(wanted).has_value());
  std::ofstream(folder / "out/CMakeLists.txt") << "changed";
  CHECK(has(error_of(wanted), "is not empty"));
  CHECK(content(folder / "out/CMakeLists.txt") == "changed");

  std::ofstream(folder / "file") << "text";
  wanted.target = folder / "file";
  CHECK(has(error_of(wanted), "is not a folder"));
  CHECK(content(folder / "file") == "text");

  wanted.target = folder / "missing/out";
  CHECK(has(error_of(wanted), "create its parent folder first"));
  CHECK_FALSE(fs::exists(folder / "missing"));
}

TEST_CASE("after an error, nothing is left") {
  const TestFolder folder;
  fs::create_directories(folder / "templates/tools-cpp");
  std::ofstream(folder / "templates/tools-cpp/CMakeLists.txt") << "text";
  // This file's new name is longer than file names can be.
  std::ofstream(folder / ("templates/tools-cpp/" + std::string(200, 'z') + "hello-tools"));
  NewPlugin wanted{folder / "templates", folder / "out", "tools", "c++", std::string(64, 'n')};
  CHECK(has(error_of(wanted), "cannot create"));
  CHECK_FALSE(fs::exists(wanted.target));

  fs::create_directory(wanted.target);
  CHECK(has(error_of(wanted), "cannot create"));
  CHECK(fs::is_empty(wanted.target));
}

TEST_CASE("folders in a template are ignored") {
  const TestFolder folder;
  fs::create_directories(folder / "templates/tools-cpp/build");
  std::ofstream(folder / "templates/tools-cpp/CMakeLists.txt") << "hello-tools HelloTools";
  const auto made =
      create_plugin({folder / "templates", folder / "out", "tools", "c++", "my-2-tools"});
  REQUIRE(made.has_value());
  CHECK(*made == std::vector<std::string>{"CMakeLists.txt"});
  CHECK(content(folder / "out/CMakeLists.txt") == "my-2-tools My2Tools");
}

TEST_CASE("invalid names, kinds and languages are reported with a remedy") {
  for (const char *name :
       {"", "My-tools", "2-tools", "-tools", "my_tools", "my tools", "a/b", "..", "t\xC3\xA4st"}) {
    INFO(name);
    const auto valid = check_plugin_name(name);
    REQUIRE_FALSE(valid.has_value());
    CHECK(valid.error().code == BH_E_INVALID);
    CHECK(has(valid.error().text, "begins with a letter"));
  }
  CHECK(check_plugin_name(std::string(64, 'a')).has_value());
  CHECK_FALSE(check_plugin_name(std::string(65, 'a')).has_value());
  for (const char *name : {"test", "all", "install", "builtin"}) {
    CHECK(has(check_plugin_name(name).error().text, std::string("\"my-") + name + "\""));
  }
  for (const char *name : {"int", "class", "std", "main", "c", "x-"}) {
    CHECK(check_plugin_name(name).has_value());
  }

  const TestFolder folder;
  const NewPlugin good{TEST_TEMPLATES, folder / "out", "tools", "c++", "mine"};
  NewPlugin wanted = good;
  wanted.kind = "tool";
  CHECK(has(error_of(wanted), "did you mean \"tools\"?"));
  wanted.kind = "../tools";
  CHECK(has(error_of(wanted), "The kinds are tools, policy"));
  wanted = good;
  wanted.language = "rust";
  CHECK(has(error_of(wanted), "use --lang c++ or --lang c"));
  wanted = good;
  wanted.name = "Mine";
  CHECK(has(error_of(wanted), "\"Mine\" is not a valid plugin name"));
  wanted = good;
  wanted.templates = folder / "none";
  CHECK(has(error_of(wanted), "install the SDK"));

  // Without the template, the error lists the templates that exist.
  fs::create_directories(folder / "some/tools-cpp");
  fs::create_directories(folder / "some/tools-c");
  fs::create_directories(folder / "some/policy-cpp");
  wanted = {folder / "some", folder / "out", "policy", "c", "mine"};
  CHECK(has(error_of(wanted), "the templates are tools (c++, c), policy (c++)"));
  CHECK_FALSE(fs::exists(folder / "out"));
}
