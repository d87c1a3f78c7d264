// Tests the list of quarantined plugins.
#include "trust/quarantine.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "common/test_folder.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

TEST_CASE("a quarantined plugin is listed once, and cleared by its digest or ID") {
  const TestFolder folder;
  Quarantine list(folder.path);
  CHECK(list.read()->empty());
  CHECK(list.clear("one")->empty());
  REQUIRE(list.add({"aa", "one", "1.0", "crashed", 1}).has_value());
  REQUIRE(list.add({"bb", "one", "1.1", "hung", 2}).has_value());
  REQUIRE(list.add({"aa", "one", "1.0", "crashed again", 3}).has_value());
  REQUIRE(list.add({"cc", "two", "1.0", "crashed", 4}).has_value());
  const auto entries = Quarantine(folder.path).read();
  REQUIRE(entries.has_value());
  REQUIRE(entries->size() == 3);
  CHECK(entries->at(1).sha256 == "aa");
  CHECK(entries->at(1).reason == "crashed again");
  CHECK(entries->at(1).at == 3);
  CHECK(list.clear("cc")->size() == 1);
  CHECK(list.clear("one")->size() == 2);
  CHECK(list.read()->empty());
}

TEST_CASE("the number of quarantined plugins is limited, and a damaged list is an error") {
  const TestFolder folder;
  Quarantine list(folder.path);
  for (std::size_t i = 0; i <= Quarantine::max_entries; ++i)
    REQUIRE(list.add({std::to_string(i), "one", "1.0", "crashed", i}).has_value());
  const auto entries = list.read();
  REQUIRE(entries.has_value());
  CHECK(entries->size() == Quarantine::max_entries);
  CHECK(entries->front().sha256 == "1");
  std::filesystem::resize_file(folder / "quarantine/list.json", 100);
  CHECK(list.read().error().code == BH_E_INVALID);
}
