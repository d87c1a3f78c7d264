// Tests a server's `roots` and `root_folders` keys.
#include <catch2/catch.hpp>

#include "layers/profile_test_util.hpp"
#include "layers/user_layer.hpp"
#include "profile/difference.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

Profile with_keys(const std::string &keys) {
  return good({{"file", "p.toml", "[mcpServers.a]\ncommand = \"x\"\n" + keys}});
}
std::string error_of(const std::string &keys) {
  const auto errors = bad({{"file", "p.toml", "[mcpServers.a]\ncommand = \"x\"\n" + keys}});
  return errors.size() == 1 ? to_string(errors.front()) : "several errors";
}

}  // namespace

TEST_CASE("roots are off by default; with session = per-client, the client provides them") {
  const auto mode = [](const std::string &keys) {
    return with_keys(keys).servers.at(0).roots_mode();
  };
  CHECK(mode("") == RootsMode::off);
  CHECK(mode("session = \"per-client\"\n") == RootsMode::per_client);
  CHECK(mode("roots = \"off\"\nsession = \"per-client\"\n") == RootsMode::off);
  CHECK(mode("roots = \"per-client\"\n") == RootsMode::per_client);
  const ServerDef def =
      with_keys("session = \"per-client\"\nroots = \"static\"\nrootFolders = []\n").servers.at(0);
  CHECK(def.roots_mode() == RootsMode::static_list);
  CHECK(def.root_folders.empty());
}

TEST_CASE("root folders are absolute or in the home folder, and are stored normalized") {
  const ServerDef def =
      with_keys("roots = \"static\"\nroot_folders = [\"/srv/a/../b/\", \"~\", \"~/x y\", \"/\"]\n")
          .servers.at(0);
  CHECK(def.root_folders == std::vector<std::string>{"/srv/b", "/home/u", "/home/u/x y", "/"});
  CHECK(masked_json(def).find(
            R"("roots":"static","root_folders":["/srv/b","/home/u","/home/u/x y","/"])") !=
        std::string::npos);
}

TEST_CASE("invalid roots are errors with their locations") {
  CHECK(has(error_of("roots = \"shared\"\n"),
            "p.toml:3:9: mcpServers.a.roots: unknown value \"shared\"; allowed: off, static, "
            "per-client"));
  CHECK(
      has(error_of("roots = \"static\"\n"), "p.toml:3:1: mcpServers.a.roots: \"static\" requires"));
  CHECK(has(error_of("root_folders = [\"/a\"]\n"),
            "p.toml:3:1: mcpServers.a.root_folders: requires roots = \"static\""));
  CHECK(has(error_of("roots = \"off\"\nroot_folders = [\"/a\"]\n"), "requires roots = \"static\""));
  CHECK(has(error_of("roots = \"static\"\nroot_folders = [\"/a\", \"b\"]\n"),
            "mcpServers.a.root_folders[1]: \"b\" is neither an absolute path"));
  std::string many = "roots = \"static\"\nroot_folders = [";
  for (int i = 0; i < 101; ++i) many += "\"/a\",";
  CHECK(has(error_of(many + "]\n"), "more than 100 entries"));
}

TEST_CASE("a change of root folders does not require a new connection, but a change of mode does") {
  ServerDef was, is;
  was.roots = is.roots = RootsMode::static_list;
  was.root_folders = {"/a"};
  is.root_folders = {"/b"};
  CHECK(same_wire(was, is));
  CHECK_FALSE(same_server(was, is));
  is = was;
  is.roots = RootsMode::off;
  CHECK_FALSE(same_wire(was, is));
}
