// Tests which folders the builtin file tools may use if servers can change the paths to them.
#include "sources/file_folders.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/test_folder.hpp"
#include "sources/profile_source.hpp"

using namespace bulkhead;
using namespace bulkhead::program;
namespace fs = std::filesystem;

namespace {

// A home directory with a key and a project, and the record of the folders that servers were able
// to change.
struct House {
  House() {
    ::setenv("HOME", home.c_str(), 1);
    for (const char *name : {".ssh", "proj/ws", "data", "store", "state/cache"}) {
      fs::create_directories(at(name));
    }
    profile.state_dir = at("state");
  }
  ~House() {
    if (before.empty()) {
      ::unsetenv("HOME");
    } else {
      ::setenv("HOME", before.c_str(), 1);
    }
  }
  House(const House &) = delete;
  House &operator=(const House &) = delete;

  std::string at(const std::string &name) const { return home + "/" + name; }
  void link(const std::string &name, const std::string &target) const {
    fs::remove_all(at(name));
    fs::create_symlink(target, at(name));
  }
  void record(const std::string &name) const {
    std::ofstream(at("state/cache/.granted"), std::ios::app) << '\0' << 'w' << at(name) << '\0';
  }
  void add(const std::string &id, const std::string &config) {
    PluginUse use;
    use.id = id;
    use.plugin = "builtin-files";
    use.config_json = config;
    profile.tools.push_back(use);
  }
  // Adds a server that can change the folder.
  void add_server(const std::string &folder_name, bool disabled = false) {
    ServerDef server;
    server.name = "s";
    server.command = "server";
    server.args = {at(folder_name)};
    server.disabled = disabled;
    profile.servers.push_back(server);
  }
  // Returns the configurations of the tools that remain.
  std::string resolve() {
    resolve_file_folders(&profile);
    std::string out;
    for (const PluginUse &use : profile.tools) out += use.id + use.config_json + " ";
    return out;
  }

  const std::string before = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  TestFolder folder;
  const std::string home = fs::canonical(folder.path).string();
  Profile profile;
};

}  // namespace

TEST_CASE("folders without links are used unchanged, even if they are secret") {
  House s;
  s.record("proj");
  s.add("a", "{}");
  s.add("b", R"({"path":")" + s.at("proj/ws") + R"(","write":true,"resolved":false})");
  s.add("c", R"({"path":")" + s.at(".ssh") + R"("})");
  s.add("d", R"({"path":"/missing/folder"})");
  CHECK(s.resolve() == R"(a{"resolved":true} b{"path":")" + s.at("proj/ws") +
                           R"(","write":true,"resolved":true} c{"path":")" + s.at(".ssh") +
                           R"(","resolved":true} d{"path":"/missing/folder","resolved":true} )");
  CHECK(s.profile.notes.empty());
}

TEST_CASE("links of the user are resolved in the paths of the file tools") {
  House s;
  s.link("proj/ws", "../data");
  s.link("away", s.at("store"));
  s.add("a", R"({"path":")" + s.at("proj/ws") + R"("})");
  s.add("b", R"({"workspaces":[{"name":"x","path":")" + s.at("proj/ws") +
                 R"("},{"name":"y","path":"/"}],"snapshots":{"path":")" + s.at("away") + R"("}})");
  CHECK(s.resolve() == R"(a{"path":")" + s.at("data") +
                           R"(","resolved":true} b{"workspaces":[{"name":"x","path":")" +
                           s.at("data") + R"("},{"name":"y","path":"/"}],"snapshots":{"path":")" +
                           s.at("store") + R"("},"resolved":true} )");
  CHECK(s.profile.notes.empty());
}

TEST_CASE("links that lead to the home directory are followed") {
  House s;
  const std::string linked = s.folder.path + "-link";
  fs::create_directory_symlink(s.home, linked);
  ::setenv("HOME", linked.c_str(), 1);
  fs::create_directories(s.at("state/snaps"));
  s.record("proj");
  s.link("proj/ws", s.at("data"));
  s.add("a", R"({"path":")" + linked + R"(/data","snapshots":{"path":")" + linked +
                 R"(/state/snaps"}})");
  s.add("b", R"({"path":")" + linked + R"(/proj/ws"})");
  CHECK(s.resolve() == R"(a{"path":")" + s.at("data") + R"(","snapshots":{"path":")" +
                           s.at("state/snaps") + R"("},"resolved":true} )");
  CHECK(s.profile.notes.size() == 1);
  fs::remove(linked);
}

TEST_CASE("a server that is disabled does not disable file tools") {
  House s;
  const bool disabled = GENERATE(false, true);
  s.add_server("proj", disabled);
  s.link("proj/ws", s.at("data"));
  s.add("a", R"({"path":")" + s.at("proj/ws") + R"("})");
  CHECK(s.resolve().empty() == !disabled);
}

TEST_CASE("the note on a link says if it is not known where the link leads") {
  House s;
  std::string deep = s.at("data");
  for (int i = 0; i < 600; ++i) deep += "/d";
  s.link("code", deep);
  s.add("a", R"({"path":")" + s.at("code") + R"("})");
  CHECK(s.resolve().empty());
  REQUIRE(s.profile.notes.size() == 1);
  CHECK(s.profile.notes[0] == "the tools \"a\" are disabled: " + s.at("code") +
                                  " leads through a symbolic link, and its target cannot be "
                                  "determined");
}

TEST_CASE("file tools do not follow a link that a server can change") {
  const std::string target = GENERATE("data", ".ssh", "", "../..");
  House s;
  s.record("proj");
  s.link("proj/ws", s.at(target));
  s.link("proj/sub", "ws");
  s.add("path", R"({"path":")" + s.at("proj/ws") + R"(","write":true})");
  s.add("list", R"({"workspaces":[{"name":"x","path":")" + s.at("store") +
                    R"("},{"name":"y","path":")" + s.at("proj/sub") + R"("}]})");
  s.add("snapshots",
        R"({"path":")" + s.at("store") + R"(","snapshots":{"path":")" + s.at("proj/ws") + R"("}})");
  s.add("other", R"({"path":")" + s.at("store") + R"("})");
  CHECK(s.resolve() == R"(other{"path":")" + s.at("store") + R"(","resolved":true} )");
  REQUIRE(s.profile.notes.size() == 3);
  CHECK(s.profile.notes[0].starts_with("the tools \"path\" are disabled: " + s.at("proj/ws") +
                                       " leads to "));
}

TEST_CASE("the first start gives the same answer as later starts, which have a record") {
  House s;
  s.add_server("proj");
  s.link("proj/ws", s.at("data"));
  s.link("away", s.at("data"));
  s.add("a", R"({"path":")" + s.at("proj/ws") + R"("})");
  s.add("b", R"({"path":")" + s.at("away") + R"("})");
  CHECK(s.resolve() == R"(b{"path":")" + s.at("data") + R"(","resolved":true} )");
  CHECK(s.profile.notes.size() == 1);
}

TEST_CASE("file tools whose path leads through a link to a missing folder are disabled") {
  House s;
  s.link("code", s.at("unmounted"));
  s.add("a", R"({"path":")" + s.at("code/ws") + R"("})");
  s.add("b", R"({"path":")" + s.at("data/later") + R"("})");
  CHECK(s.resolve() == R"(b{"path":")" + s.at("data/later") + R"(","resolved":true} )");
  REQUIRE(s.profile.notes.size() == 1);
  CHECK(s.profile.notes[0] == "the tools \"a\" are disabled: " + s.at("code/ws") +
                                  " leads through a symbolic link to a folder that does not "
                                  "exist; reload the profile when it does");
}

TEST_CASE("file tools follow no link to a home directory or a hidden path") {
  const std::string target = GENERATE(".ssh", "", "state", "state/cache", "own");
  House s;
  fs::create_directories(s.at("own"));
  s.profile.own_paths = {s.at("own")};
  s.link("proj/ws", s.at(target));
  s.add("a", R"({"path":")" + s.at("proj/ws") + R"("})");
  CHECK(s.resolve().empty());
  CHECK(s.profile.notes.size() == 1);
}

TEST_CASE("the builtin file tools are not offered in a folder with credentials") {
  House s;
  ::setenv("XDG_CONFIG_HOME", s.at("config").c_str(), 1);
  fs::create_directories(s.at(".config/gh/inner"));
  s.link("proj/ws", s.at(".ssh"));
  const fs::path before = fs::current_path();
  const auto offered = [&](const std::string &folder) {
    fs::current_path(s.at(folder));
    const auto loaded = load_for(Arguments(), Transports::served);
    fs::current_path(before);
    REQUIRE(loaded);
    const auto &tools = loaded->profile.tools;
    return std::any_of(tools.begin(), tools.end(),
                       [](const PluginUse &use) { return use.plugin == "builtin-files"; });
  };
  for (const char *folder : {".ssh", "proj/ws", ".config/gh", ".config/gh/inner"}) {
    INFO(folder);
    CHECK_FALSE(offered(folder));
  }
  for (const char *folder : {"proj", "data"}) CHECK(offered(folder));
}
