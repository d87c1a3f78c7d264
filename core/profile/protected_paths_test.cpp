#include "profile/protected_paths.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "profile/difference.hpp"

using namespace bulkhead;
using Paths = std::vector<std::string>;

TEST_CASE("a profile protects more files only if the current one does not protect their folder") {
  Profile now, next;
  now.own_paths = {"/home/u/.config/bulkhead", "/x/p.toml"};
  now.programs = {"/opt/plugins"};
  next = now;
  CHECK_FALSE(protects_more(now, next));
  next.own_paths = {"/x/p.toml", "/home/u/.config/bulkhead/connectors.json"};
  next.programs.clear();
  CHECK_FALSE(protects_more(now, next));
  for (const char *path : {"/x/base.toml", "/x/p.toml.new", "/home/u/.config"}) {
    INFO(path);
    next = now;
    next.own_paths.emplace_back(path);
    CHECK(protects_more(now, next));
  }
  for (const char *path : {"/opt/other/plugin.so", "/opt/plugins/sub/plugin.so", "/opt/plugins2"}) {
    INFO(path);
    next = now;
    next.programs.emplace_back(path);
    CHECK(protects_more(now, next));
  }
  next = now;
  next.programs.emplace_back("/opt/plugins/plugin.so");
  CHECK_FALSE(protects_more(now, next));
}

TEST_CASE(
    "a reload protects what its settings name, and what settings name that it cannot change") {
  Profile now, next;
  now.own_paths = {"/x/old.toml"};
  now.programs = {"/old/tool.so", "/old/connector.so"};
  now.fixed_own_paths = {"/run/old.sock"};
  now.fixed_programs = {"/old/transport.so"};
  now.connectors = next.connectors = {{"odd", "/old/connector.so"}};
  next.own_paths = {"/x/new.toml"};
  next.programs = {"/new/tool.so", "/old/connector.so"};
  next.fixed_own_paths = {"/run/new.sock"};
  next.fixed_programs = {"/new/transport.so"};
  SECTION("the files of settings that it changes") {
    keep_fixed(now, &next);
    forget_missing(&next);
    CHECK(all_own_paths(next) == Paths{"/x/new.toml", "/run/old.sock"});
    CHECK(all_programs(next) == Paths{"/new/tool.so", "/old/connector.so", "/old/transport.so"});
    CHECK(protects_more(now, next));
  }
  SECTION("nothing new if none of its changes is applied") {
    next.own_paths = now.own_paths;
    next.programs = now.programs;
    keep_fixed(now, &next);
    CHECK(all_own_paths(next) == all_own_paths(now));
    CHECK(all_programs(next) == all_programs(now));
    CHECK_FALSE(protects_more(now, next));
  }
  SECTION("removed files while they exist") {
    const std::string file = std::filesystem::current_path().string();
    now.own_paths.push_back(file);
    now.programs.push_back(file);
    keep_fixed(now, &next);
    CHECK(forget_missing(&next));
    CHECK_FALSE(forget_missing(&next));
    CHECK(next.own_paths == Paths{"/x/new.toml", file});
    CHECK(next.programs == Paths{"/new/tool.so", "/old/connector.so", file});
  }
  SECTION("a connector that it would remove or replace") {
    next.programs = {"/new/tool.so"};
    if (GENERATE(true, false)) {
      next.connectors.clear();
    } else {
      next.connectors["odd"] = "/new/connector.so";
      next.programs.emplace_back("/new/connector.so");
    }
    CHECK(keep_fixed(now, &next) == Paths{"connectors.odd: needs a restart"});
    forget_missing(&next);
    const Paths programs = all_programs(next);
    CHECK(std::count(programs.begin(), programs.end(), "/old/connector.so") == 1);
  }
}

TEST_CASE("missing files that a reload removes stay protected until it has succeeded") {
  Profile now, next;
  now.own_paths = {"/x/old.toml"};
  now.programs = {"/old/tool.so"};
  next.own_paths = {"/x/new.toml"};
  next.programs = {"/new/tool.so"};
  keep_fixed(now, &next);
  next.fixed_programs = {"/plugins/target"};  // a link leads there now
  CHECK(next.own_paths == Paths{"/x/new.toml", "/x/old.toml"});
  CHECK(next.programs == Paths{"/new/tool.so", "/old/tool.so"});
  SECTION("it succeeds") {
    CHECK(forget_missing(&next));
    CHECK(next.own_paths == Paths{"/x/new.toml"});
    CHECK(next.programs == Paths{"/new/tool.so"});
  }
  SECTION("it is rejected") {
    protect_also(next, &now);
    CHECK(now.own_paths == Paths{"/x/old.toml", "/x/new.toml"});
    CHECK(now.programs == Paths{"/old/tool.so", "/new/tool.so"});
    CHECK_FALSE(protects_more(next, now));
  }
}

TEST_CASE("a reload notices a protected folder that was deleted and created again") {
  const std::string at = (std::filesystem::canonical(std::filesystem::temp_directory_path()) /
                          ("protected_folders_test." + std::to_string(::getpid())))
                             .string();
  Profile now, next;
  now.programs = {at + "/lib/tool.so"};
  now.own_paths = {at + "/conf"};
  const auto create = [&] {
    std::filesystem::create_directories(at + "/lib");
    std::filesystem::create_directories(at + "/conf");
  };
  create();
  note_protected_folders(&now);
  next = now;
  keep_fixed(now, &next);
  CHECK_FALSE(protects_more(now, next));
  // The inode of a deleted folder could be reused, so the old folder is renamed instead.
  const auto replaced = [&](const std::string &name, bool reload_while_missing) {
    std::filesystem::rename(at + name, at + ".gone");
    Profile later = next, last = next;
    if (reload_while_missing) {
      keep_fixed(next, &later);
      keep_missing_folders(next, &later);
      CHECK_FALSE(protects_more(next, later));
    }
    std::filesystem::create_directories(at + "/conf");
    if (name.empty()) {  // only the parent folder is a different one
      for (const char *same : {"/lib", "/conf"}) {
        std::filesystem::remove_all(at + same);
        std::filesystem::rename(at + ".gone" + same, at + same);
      }
    }
    create();
    keep_fixed(later, &last);
    CHECK(protects_more(later, last));
  };
  SECTION("the folder of a plugin") {
    replaced("/lib", GENERATE(false, true));
  }
  SECTION("a folder with the gateway's files") {
    replaced("/conf", GENERATE(false, true));
  }
  SECTION("a folder that may get the same inode again") {
    std::filesystem::remove_all(at + "/conf");
    create();
    Profile later = next;
    keep_fixed(next, &later);
    CHECK(protects_more(next, later));
  }
  SECTION("only the folder above them") {
    replaced("", GENERATE(false, true));
  }
  SECTION("but not a folder in one that is hidden") {
    now.own_paths.push_back(at + "/conf/profiles");
    std::filesystem::create_directory(at + "/conf/profiles");
    note_protected_folders(&now);
    CHECK(now.protected_folders.contains(at + "/conf"));
    CHECK_FALSE(now.protected_folders.contains(at + "/conf/profiles"));
  }
  std::filesystem::remove_all(at + ".gone");
  std::filesystem::remove_all(at);
}

TEST_CASE("a reload notices a new target of a link that a setting names that it cannot change") {
  const std::string at = (std::filesystem::canonical(std::filesystem::temp_directory_path()) /
                          ("protected_paths_test." + std::to_string(::getpid())))
                             .string();
  REQUIRE(std::filesystem::create_directory(at));
  for (const char *name : {"/one", "/two"}) std::filesystem::create_directory(at + name);
  std::filesystem::create_symlink("one", at + "/plugins");
  Profile now, next;
  now.fixed_programs = next.fixed_programs = {at + "/plugins"};
  add_targets(&now.fixed_programs);
  CHECK(now.fixed_programs == Paths{at + "/plugins", at + "/one"});
  std::filesystem::remove(at + "/plugins");
  std::filesystem::create_symlink("two", at + "/plugins");
  keep_fixed(now, &next);
  CHECK(all_programs(next) == Paths{at + "/plugins", at + "/one", at + "/two"});
  CHECK(protects_more(now, next));
  // Every folder that contains a link of a chain counts, and the target may be missing.
  std::filesystem::create_directory(at + "/chain");
  std::filesystem::create_symlink(at + "/chain/second", at + "/first");
  std::filesystem::create_symlink(at + "/one/missing.so", at + "/chain/second");
  Profile chain;
  chain.programs = {at + "/first"};
  add_targets(&chain.programs);
  CHECK(chain.programs == Paths{at + "/first", at + "/one/missing.so"});
  note_protected_folders(&chain);
  Profile later = chain;
  std::filesystem::rename(at + "/chain", at + "/chain.gone");
  std::filesystem::create_directory(at + "/chain");
  std::filesystem::create_symlink(at + "/one/missing.so", at + "/chain/second");
  note_protected_folders(&later);
  CHECK(protects_more(chain, later));
  // A link to the same file through another folder.
  now = chain;
  std::filesystem::create_symlink(at + "/one/missing.so", at + "/two/other");
  std::filesystem::remove(at + "/first");
  std::filesystem::create_symlink(at + "/two/other", at + "/first");
  std::filesystem::remove_all(at + "/chain");
  std::filesystem::rename(at + "/chain.gone", at + "/chain");
  note_protected_folders(&chain);
  CHECK(all_programs(chain) == all_programs(now));
  CHECK(protects_more(now, chain));
  now.programs.push_back(at + "/two");  // its contents are protected
  chain.programs = now.programs;
  CHECK_FALSE(protects_more(now, chain));
  // Creating a missing path does not change the target.
  Paths state{at + "/plugins/state/pins"};
  add_targets(&state);
  CHECK(state == Paths{at + "/plugins/state/pins", at + "/two/state/pins"});
  std::filesystem::remove_all(at);
}
