// Tests the log of changes to installed plugins.
#include "trust/plugin_log.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "common/test_folder.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

TEST_CASE("events are returned in order, and a torn line does not hide the others") {
  const TestFolder folder;
  PluginLog log(folder.path);
  CHECK(log.read()->empty());
  REQUIRE(log.append({1, "add", "one", "1.0", "aa", "KEY", "first\nline"}).has_value());
  std::ofstream(folder / "plugins.log", std::ios::app) << R"({"at":2,"event":"ad)";
  REQUIRE(log.append({3, "remove", "one", "1.0", "aa", "", ""}).has_value());
  const auto events = log.read();
  REQUIRE(events.has_value());
  REQUIRE(events->size() == 2);
  CHECK(events->at(0).at == 1);
  CHECK(events->at(0).signer == "KEY");
  CHECK(events->at(0).note.find('\n') == std::string::npos);
  CHECK(events->at(1).event == "remove");
  struct stat status{};
  REQUIRE(::stat((folder / "plugins.log").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("a full log is renamed, and its events are still returned") {
  const TestFolder folder;
  PluginLog log(folder.path);
  PluginEvent event{7, "add", "one", "1.0", "", "", std::string(900, 'n')};
  const std::size_t enough = PluginLog::max_bytes / event.note.size() + 2;
  for (std::size_t i = 0; i < enough; ++i) {
    event.at = i;
    REQUIRE(log.append(event).has_value());
  }
  CHECK(std::filesystem::exists(folder / "plugins.log.1"));
  CHECK(std::filesystem::file_size(folder / "plugins.log") < PluginLog::max_bytes);
  const auto events = log.read();
  REQUIRE(events.has_value());
  REQUIRE(events->size() == enough);
  CHECK(events->back().at == enough - 1);
}

TEST_CASE("a log that is a symbolic link is not written") {
  const TestFolder folder;
  std::ofstream(folder / "victim") << "text";
  std::filesystem::create_symlink(folder / "victim", folder / "plugins.log");
  CHECK_FALSE(PluginLog(folder.path).append({1, "add", "one", "1", "", "", ""}).has_value());
  CHECK(std::filesystem::file_size(folder / "victim") == 4);
}
