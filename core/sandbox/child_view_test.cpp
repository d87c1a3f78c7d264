// Tests which paths a planned view grants and hides. child_view_links_test.cpp tests links in named
// paths; spawn_hidden_test.cpp, spawn_granted_test.cpp and tests/e2e/server_paths.mjs test what
// servers can then do.
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "sandbox/child_view_place.hpp"
#include "sandbox/folder_entries.hpp"
#include "sandbox/grant_record.hpp"

using namespace bulkhead;

TEST_CASE("the parents of hidden and read-only paths in a writable folder are mount points") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  fs::create_directories(p.folder + "/projects/a/b/mcp");
  const std::string top = p.folder + "/projects", profile = top + "/a/b/mcp/gateway.json";
  std::ofstream(profile) << "text";
  p.request.own = {profile};
  p.file(".config/git/credentials");
  p.file("granted/x/y/file");
  p.policy.args = {top, p.at(".config")};
  p.policy.read = {p.at("granted/x/y/file")};
  p.policy.write = {p.at("granted")};
  p.plan();
  for (const std::string &path : {top, top + "/a", top + "/a/b", p.at(".config"),
                                  p.at(".config/git"), p.at("granted/x"), p.at("granted/x/y")}) {
    INFO(path);
    CHECK(p.grants(path));
  }
  // A file that replaces the gateway's file is not visible.
  CHECK(p.kind(top + "/a/b/mcp") == Kind::mirror);
  CHECK_FALSE(p.kind(profile).has_value());
  CHECK(p.view.notes.empty());
  CHECK(p.kind(p.at(".config/git/credentials")) == Kind::empty_file);
  CHECK(p.grants(p.at("granted/x/y/file"), false));
}

TEST_CASE("a user's link in a folder above the gateway's file is followed at every start") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file("granted/a/mcp/gateway.json");
  p.file("granted/a/b/c/gateway.json");
  p.file("granted/shared/data.db");
  p.link("granted/a/current", "../shared");
  p.request.own = {p.at("granted/a/mcp/gateway.json"), p.at("granted/a/b/c/gateway.json")};
  p.policy.args = {p.at("granted"), p.at("granted/a/current/data.db")};
  GrantRecord record{std::string()};
  for (int start = 0; start < 2; ++start) {
    INFO(start);
    p.request.changeable.clear();
    record.add_to(&p.request);
    p.plan();
    CHECK(p.view.ignored.empty());
    CHECK(p.grants(p.at("granted/a")));
    CHECK(p.grants(p.at("granted/a/b")));
    CHECK(p.grants(p.at("granted/shared")));
    REQUIRE(record.add(p.view));
  }
  CHECK(p.request.changeable == std::vector<std::string>{p.at("granted"), p.at("granted/shared")});
}

TEST_CASE("a server for which too many folders would have to be mounted is not started") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.policy.args = {p.at("granted"), p.at(".config")};
  p.file(".config/x");
  const auto chain = [&](std::size_t length) {
    std::string path = "granted";
    for (std::size_t i = 0; i < length; ++i) path += "/d";
    fs::create_directories(p.at(path));
    p.link(".config/gh", "../" + path);  // a server can create this link
    p.plan();
    return std::count_if(p.view.steps.begin(), p.view.steps.end(),
                         [](const ViewStep &step) { return step.pin; });
  };
  CHECK(chain(257) == 256);
  CHECK(p.view.refused.empty());
  CHECK(chain(1000) == 0);
  CHECK(p.view.refused.starts_with("it is not known where " + p.at(".config/gh") + " leads"));
  CHECK(chain(258) == 0);
  CHECK(p.view.refused.starts_with("more than 256 folders in " + p.at("granted") + " contain "));
  p.policy.args = {p.at(".config")};
  p.plan();
  CHECK(p.view.refused.empty());
}

TEST_CASE("a server cannot replace a link to the gateway's configuration") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file("dotfiles/gateway.json");
  p.file("granted/other/file");
  p.link("granted/mcp/gateway.json", p.at("dotfiles/gateway.json"));
  p.request.own = {p.at("granted/mcp/gateway.json")};
  p.policy.args = {p.at("granted"), p.at("dotfiles")};
  p.plan();
  CHECK(p.grants(p.at("granted")));
  CHECK(p.grants(p.at("granted/mcp"), false));
  CHECK(p.grants(p.at("dotfiles")));
  CHECK(p.kind(p.at("dotfiles/gateway.json")) == Kind::empty_file);
  CHECK(p.view.notes.size() == 2);  // one for the link, one for the folder of the file
  p.request.own = {p.at("granted/missing/sub/gateway.json"), p.at("elsewhere/gateway.json")};
  p.plan();
  CHECK(p.grants(p.at("granted"), false));
  CHECK(p.view.notes.size() == 1);
  p.request.own = {p.at("linked/gateway.json")};  // a link to the folder
  p.link("granted/link", "../dotfiles");
  p.link("linked", "granted/link");
  p.plan();
  CHECK(p.grants(p.at("granted"), false));
  CHECK(p.grants(p.at("dotfiles")));
}

TEST_CASE("links to credentials, and their targets, are hidden even if the targets are missing") {
  Place p;
  fs::create_directories(p.folder + "/data/config/Code/User");
  fs::create_directories(p.at("dots"));
  p.link(".gnupg", p.at("dots/gnupg"));
  p.link(".netrc", "hop");
  p.link("hop", "dots/netrc");
  p.link(".kube", p.folder + "/data/kube");
  p.link(".docker", "dots/docker");
  p.link(".config", p.folder + "/data/config");
  p.file("dots/gnupg/key");
  p.file("dots/shown");
  p.plan();
  CHECK(p.kind(p.at("dots")) == Kind::mirror);
  CHECK(p.kind(p.at("dots/shown")) == Kind::entry);
  for (const char *name : {".gnupg", ".netrc", "hop", "dots/gnupg", ".kube"}) {
    INFO(name);
    CHECK_FALSE(p.kind(p.at(name)).has_value());
  }
  CHECK(p.kind(p.at(".config")) == Kind::link);
  if (p.folder.starts_with("/tmp/")) return;
  // The whole chain of folders, up to the link's target, consists of mirrors.
  for (const char *name :
       {"/data", "/data/config", "/data/config/Code", "/data/config/Code/User"}) {
    INFO(name);
    CHECK(p.kind(p.folder + name) == Kind::mirror);
  }
}

TEST_CASE("the target of a credential's link stays hidden after a server has removed the link") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.policy.args = {p.at(".config"), p.at("kept")};
  p.file("kept/gh/hosts.yml");
  p.link(".config/gh", "../kept/gh");
  p.plan();
  CHECK(p.view.keep_hidden == std::vector<std::string>{p.at("kept/gh")});
  CHECK(p.kind(p.at("kept/gh")) == Kind::empty_folder);
  fs::remove(p.at(".config/gh"));
  CHECK_FALSE(p.plan().kind(p.at("kept/gh")).has_value());
  p.request.also_hidden = {p.at("kept/gh")};
  CHECK(p.plan().kind(p.at("kept/gh")) == Kind::empty_folder);
  // Links in a server's own HOME do not cause paths to stay hidden.
  p.link("own/.ssh", p.at("project"));
  p.file("project/file");
  p.policy.home = p.at("own");
  p.policy.args.push_back(p.at("own"));
  p.plan();
  CHECK(p.view.keep_hidden.empty());
  // A link to a system folder must not prevent servers from starting.
  p.link(".config/gh", "/usr/bin");
  p.plan();
  CHECK_FALSE(p.kind("/usr/bin").has_value());
  CHECK(p.view.keep_hidden.empty());
}

TEST_CASE("secrets are hidden in every mount of a home directory") {
  if (::geteuid() != 0) return;
  Place p;
  if (p.folder.starts_with("/tmp/")) return;
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    WARN("SKIP: this process may not mount");
    return;
  }
  p.file(".config/git/credentials");
  const std::string whole = p.folder + "/mnt/whole", part = p.folder + "/mnt/part",
                    keys = p.folder + "/mnt/keys";
  for (const std::string &path : {whole, part, keys}) fs::create_directories(path);
  const auto bind = [](const std::string &from, const std::string &to) {
    REQUIRE(::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) == 0);
  };
  bind(p.folder, whole);
  bind(p.at(".config"), part);
  bind(p.at(".ssh"), keys);
  p.plan();
  CHECK(p.kind(whole + "/home") == Kind::mirror);
  CHECK_FALSE(p.kind(whole + "/home/.ssh").has_value());
  CHECK(p.kind(whole + "/home/notes.txt") == Kind::entry);
  CHECK(p.kind(part) == Kind::mirror);
  CHECK(p.kind(part + "/git") == Kind::mirror);
  CHECK_FALSE(p.kind(part + "/git/credentials").has_value());
  CHECK(p.kind(p.folder + "/mnt") == Kind::mirror);
  CHECK_FALSE(p.kind(keys).has_value());
  p.file("granted/gateway.json");
  p.request.own = {p.at("granted/gateway.json")};
  p.policy.args = {part, whole + "/home", p.folder + "/mnt"};
  p.plan();
  CHECK_FALSE(p.kind(p.at("granted/gateway.json")).has_value());
  CHECK(p.kind(whole + "/home/granted") == Kind::mirror);
  CHECK_FALSE(p.kind(whole + "/home/granted/gateway.json").has_value());
  CHECK(p.kind(part + "/git/credentials") == Kind::empty_file);
  CHECK(p.kind(whole + "/home/.ssh") == Kind::empty_folder);
  CHECK_FALSE(p.grants(p.folder + "/mnt"));  // it contains a home directory
  for (const std::string &path : {whole, part, keys}) ::umount2(path.c_str(), MNT_DETACH);
}

TEST_CASE("the folder of root's host keys is mirrored even if it contains no key") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.request.user = 0;
  if (!fs::exists("/etc/ssh")) return;
  CHECK(p.plan().kind("/etc/ssh") == Kind::mirror);
}

TEST_CASE("the home directory of a definition uncovers nothing") {
  const std::string target = GENERATE(".ssh", ".config/bulkhead", "state/cache", "gone/.aws");
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file(".config/bulkhead/token");
  p.file("state/cache/other");
  p.file("granted/file");
  p.request.own = {p.at(".config/bulkhead"), p.at("state")};
  p.link("gone", ".");
  p.policy.home = p.link("granted/home", p.at(target));
  p.policy.env_values = {p.policy.home};
  SECTION("in a folder that is named") {
    p.policy.args = {p.at("granted")};
  }
  SECTION("in a folder that another server can change") {
    p.request.changeable = {p.at("granted")};
  }
  SECTION("in a folder of the user") {}
  p.plan();
  INFO(target);
  CHECK_FALSE(p.shows(p.at(target.starts_with("gone") ? ".aws" : target)));
  CHECK(p.notes("its HOME " + p.policy.home + " is not treated as a home directory"));
}

TEST_CASE("the home directory of a definition may be in a hidden folder or contain one") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file(".claude/settings");
  p.file(".claude/x/file");
  p.policy.home = p.at(".claude/x");
  p.policy.env_values = {p.policy.home};
  p.plan();
  CHECK(p.grants(p.at(".claude/x")));
  CHECK_FALSE(p.shows(p.at(".claude/settings")));
  CHECK_FALSE(p.kind(p.at(".claude")) == Kind::mirror);
  CHECK(p.notes("its HOME " + p.policy.home));
  // The secrets in it are hidden even if it is not treated as a home directory.
  p.file("project/.ssh/id_rsa");
  p.request.own = {p.file("project/etc/gateway.json")};
  p.policy.home = p.at("project");
  p.policy.env_values = {p.policy.home};
  p.plan();
  CHECK(p.grants(p.at("project")));
  CHECK(p.kind(p.at("project/.ssh")) == Kind::empty_folder);
  CHECK_FALSE(p.shows(p.at("project/etc/gateway.json")));
  CHECK(p.notes("its HOME " + p.policy.home));
  p.request.own.clear();
  p.plan();
  CHECK(p.kind(p.at("project/.ssh")) == Kind::empty_folder);
  CHECK(p.view.notes.empty());
}

TEST_CASE("a folder that the gateway may not search is hidden, because it may contain a secret") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file(".config/git/credentials");
  p.file("granted/kept/gh/hosts.yml");
  p.link(".config/gh", p.at("granted/kept/gh"));
  p.request.own = {p.file("granted/mcp/gateway.json")};
  const std::vector<std::string> closed = {p.at(".config/git"), p.at("granted/kept"),
                                           p.at("granted/mcp")};
  KnownPlaces places;
  p.request.places = &places;
  const auto search = [&](bool may) {
    for (const std::string &path : closed) {
      fs::permissions(path, may ? fs::perms::owner_all : fs::perms::none);
    }
  };
  p.policy.args = {p.at(".config"), p.at("granted")};
  SECTION("looked up earlier") {
    p.plan();
  }
  SECTION("not looked up earlier") {}
  search(false);
  // With CAP_DAC_OVERRIDE, every folder may be searched; see child_view_test_ordinary_user.
  if (is_searchable(p.at(".config/git"))) return search(true);
  p.plan();
  for (const std::string &path : closed) {
    INFO(path);
    CHECK(p.kind(path) == Kind::empty_folder);
  }
  CHECK(p.grants(p.at(".config")));
  CHECK(p.grants(p.at("granted")));
  CHECK(p.view.keep_hidden == std::vector<std::string>{p.at("granted/kept/gh")});
  // The folder is not granted.
  p.policy.args = {p.at(".config/git"), p.at(".config/git/credentials")};
  p.policy.write = {p.at("granted/kept"), p.at("granted/kept/gh/hosts.yml")};
  p.plan();
  search(true);
  for (const std::string &path : closed) {
    INFO(path);
    CHECK_FALSE(p.shows(path));
  }
  CHECK_FALSE(p.grants(p.at(".config/git")));
  CHECK(p.view.ignored.size() == 4);
  CHECK(p.reports("the gateway may not search the folder " + p.at("granted/kept")));
}

TEST_CASE("a file that replaces the gateway's file is not visible in a read-only folder") {
  const std::string folder = GENERATE("project", "project/sub");
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file("project/package.json");
  p.file(folder + "/other");
  p.request.own = {p.file(folder + "/gateway.json")};
  SECTION("in sandbox_paths") {
    p.policy.read = {p.at("project")};
  }
  SECTION("in the project of the program") {
    p.policy.mode = Mode::strict;
    p.request.program = p.file("project/run");
  }
  p.plan();
  CHECK(p.kind(p.at(folder)) == Kind::mirror);
  CHECK(p.kind(p.at(folder + "/other")) == Kind::entry);
  CHECK_FALSE(p.kind(p.at(folder + "/gateway.json")).has_value());
  CHECK(p.view.notes.empty());
}

TEST_CASE("a link hides no system file and no program") {
  const std::string target = GENERATE("/usr/bin/env", "/etc/passwd", "/usr/lib/missing-file",
                                      "tools", "tools/bin/run", "bin/run");
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file("tools/bin/run");
  p.request.program = p.link("bin/run", "../tools/bin/run");
  const std::string end = target.starts_with('/') ? target : p.at(target);
  const std::string real = real_path(end).empty() ? end : real_path(end);
  p.file(".config/other");
  p.policy.args = {p.at(".config")};
  const auto kinds = [&] {
    p.plan();
    return std::array{p.kind(real), p.kind(parent_of(real)), p.kind(p.at("tools"))};
  };
  const auto before = kinds();
  p.link(".config/gh", end);
  INFO(target);
  CHECK(kinds() == before);
  CHECK(p.view.keep_hidden.empty());
  CHECK(p.view.ignored.empty());
  // A target that was recorded earlier.
  p.request.also_hidden = {real};
  CHECK(kinds() == before);
}

TEST_CASE("a folder whose entries cannot be read is reported") {
  Place p;
  p.file("folder/one");
  p.file("folder/two");
  std::size_t count = 0;
  const auto use = [&](const fs::directory_entry &) { ++count; };
  CHECK(for_each_entry(p.at("folder"), use));
  CHECK(count == 2);
  CHECK(for_each_entry(p.at("missing"), use));
  CHECK(for_each_entry(p.at("folder/one"), use));
  fs::permissions(p.at("folder"), fs::perms::none);
  const bool may = is_searchable(p.at("folder"));
  CHECK(for_each_entry(p.at("folder"), use) == may);
  fs::permissions(p.at("folder"), fs::perms::owner_all);
}

TEST_CASE("another spelling of a hidden path is hidden in a mirrored folder") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  // Hard links are the same file, like two spellings in a folder that ignores case.
  const auto spell = [&](const std::string &name, const std::string &other) {
    fs::create_directories(fs::path(p.at(other)).parent_path());
    fs::create_hard_link(p.file(name), p.at(other));
  };
  spell(".netrc", ".NetRC");
  spell(".npmrc", ".NPMRC");
  spell(".config/pip/pip.conf", ".config/pip/PIP.conf");
  spell(".local/share/uv/credentials", ".local/share/uv/credential\u017f");
  spell("notes", "NOTES");
  p.file(".SSH/file");  // a different folder
  p.file(".config/pip/other");
  p.file("project/sub/file");
  p.file("PROJECT/file");
  p.policy.read = {p.at("project/sub")};
  p.plan();
  for (const char *name : {".NetRC", ".NPMRC", ".config/pip/PIP.conf",
                           ".local/share/uv/credential\u017f", ".ssh", ".netrc"}) {
    INFO(name);
    CHECK_FALSE(p.shows(p.at(name)));
  }
  if (p.policy.mode == Mode::strict) return;
  for (const char *name : {".SSH", "notes", "NOTES", ".config/pip/other", "project", "PROJECT"}) {
    INFO(name);
    CHECK(p.kind(p.at(name)) == Kind::entry);
  }
}

TEST_CASE("a home directory that is a system folder is reported") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  const std::string home = GENERATE("/", "/usr/bin", "/etc");
  const auto note = "the home directory " + home + " is a system folder";
  SECTION("of the gateway") {
    p.request.home = home;
  }
  SECTION("of the account") {
    p.request.homes = {home};
  }
  SECTION("of the definition") {
    p.policy.home = home;
  }
  p.plan();
  CHECK(p.notes(note) == p.request.homes.empty());
}

TEST_CASE("the credentials in a system folder that is a home directory are hidden") {
  const std::string home = "/usr/local";
  if (::geteuid() != 0 || !is_folder(home)) {
    WARN("SKIP: only root can mount a file system on " << home);
    return;
  }
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("none", home.c_str(), "tmpfs", 0, nullptr) != 0) {
    WARN("SKIP: this process may not mount");
    return;
  }
  fs::create_directories(home + "/.ssh");
  fs::create_directories(home + "/.config/gh");
  fs::create_directories(home + "/bin");
  SECTION("of the gateway") {
    p.request.home = home;
  }
  SECTION("of the account") {
    p.request.homes = {home};
  }
  SECTION("of the definition") {
    p.policy.home = home;
  }
  p.plan();
  ::umount2(home.c_str(), MNT_DETACH);
  CHECK_FALSE(p.shows(home + "/.ssh"));
  CHECK_FALSE(p.shows(home + "/.config/gh"));
  CHECK(p.kind(home + "/bin") == Kind::entry);
}
