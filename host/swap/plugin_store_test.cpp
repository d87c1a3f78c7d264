// Tests the store of plugin files, with the real test plugins.
#include "swap/plugin_store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "plugin/test_folder.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace fs = std::filesystem;

namespace {

OpenPlugin opened(const std::string &path) {
  auto plugin = open_plugin(path, {});
  REQUIRE(plugin.has_value());
  return std::move(*plugin);
}

std::size_t entries(const fs::path &folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto &entry : fs::directory_iterator(folder)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a copy is complete and independent of the original file") {
  testing::TestFolder folder;
  folder.copy("good");
  const OpenPlugin plugin = opened(folder / "good.so");
  fs::remove(folder / "good.so");
  fs::remove(folder / "good.plugin.toml");
  const std::string state = folder / "state";
  const auto stored = store_plugin(state, plugin);
  REQUIRE(stored.has_value());
  CHECK(stored->id == "good");
  CHECK_FALSE(stored->version.empty());
  CHECK(stored->sha256.size() == 64);
  CHECK(stored->path.starts_with(state + "/swapped/"));
  LoadOptions exact;
  exact.sha256 = stored->sha256;
  const auto copy = Library::check(stored->path, exact);
  REQUIRE(copy.has_value());
  CHECK(copy->manifest.version == plugin.library.manifest.version);
  CHECK((copy->status.st_mode & 0777) == 0444);
  CHECK(entries(fs::path(stored->path).parent_path()) == 2);  // no temporary files
}

TEST_CASE("a copy that was changed is replaced") {
  testing::TestFolder folder;
  folder.copy("good");
  const std::string state = folder / "state";
  const OpenPlugin plugin = opened(folder / "good.so");
  const auto first = store_plugin(state, plugin);
  REQUIRE(first.has_value());
  fs::permissions(first->path, fs::perms::owner_write, fs::perm_options::add);
  std::ofstream(first->path, std::ios::app) << "x";
  LoadOptions exact;
  exact.sha256 = first->sha256;
  CHECK_FALSE(Library::check(first->path, exact).has_value());
  const auto second = store_plugin(state, plugin);
  REQUIRE(second.has_value());
  CHECK(second->path == first->path);
  CHECK(Library::check(second->path, exact).has_value());
}

TEST_CASE("the same library with another manifest is another copy") {
  testing::TestFolder folder;
  folder.copy("good");
  const std::string state = folder / "state";
  const auto first = store_plugin(state, opened(folder / "good.so"));
  std::ofstream(folder / "good.plugin.toml", std::ios::app) << "exclusive = true\n";
  const auto second = store_plugin(state, opened(folder / "good.so"));
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  CHECK(first->sha256 == second->sha256);
  CHECK(first->path != second->path);
  CHECK_FALSE(first->exclusive);
  CHECK(second->exclusive);
}

TEST_CASE("only copies that no gateway uses are removed") {
  testing::TestFolder folder;
  folder.copy("good");
  const std::string state = folder / "state";
  const fs::path store = fs::path(state) / "swapped";
  const OpenPlugin plugin = opened(folder / "good.so");
  remove_unused_plugins(state);  // there is no store yet
  {
    const auto one = store_plugin(state, plugin), two = store_plugin(state, plugin);
    REQUIRE(one.has_value());
    REQUIRE(two.has_value());
    remove_unused_plugins(state);
    CHECK(entries(store) == 1);
    CHECK(fs::exists(one->path));
  }
  remove_unused_plugins(state);
  CHECK(entries(store) == 0);
  CHECK(store_plugin(state, plugin).has_value());
}

TEST_CASE("a plugin cannot be stored without a state folder") {
  testing::TestFolder folder;
  folder.copy("good");
  const auto stored = store_plugin("", opened(folder / "good.so"));
  REQUIRE_FALSE(stored.has_value());
  CHECK(stored.error().text.find("no state folder") != std::string::npos);
}
