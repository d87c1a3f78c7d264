// Tests which paths a planned view grants and hides, in particular through symbolic links and
// mounts. spawn_test.cpp and tests/e2e/server_paths.mjs test what servers can then do.
#include "sandbox/child_view.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "sandbox/grant_record.hpp"

using namespace bulkhead;

namespace {

namespace fs = std::filesystem;
using Kind = ViewStep::Kind;
using Mode = ChildPolicy::Mode;

// A home directory in a temporary folder outside /tmp, if possible, because /tmp is not visible in
// a sandbox.
struct Place {
  std::string folder, home;
  ChildPolicy policy;
  ViewRequest request;
  ChildView view;

  Place() {
    std::string name = "/var/bulkhead-view-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      name = "/tmp/bulkhead-view-XXXXXX";
      REQUIRE(::mkdtemp(name.data()) != nullptr);
    }
    folder = real_path(name);
    home = folder + "/home";
    file(".ssh/id_rsa");
    file(".aws/credentials");
    file("notes.txt");
    policy.command = "server";
    request.policy = &policy;
    request.program = "/bin/sh";
    request.home = home;
    request.user = ::geteuid();
  }
  ~Place() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  Place(const Place &) = delete;
  Place &operator=(const Place &) = delete;

  std::string at(const std::string &name) const { return name.empty() ? home : home + "/" + name; }
  std::string file(const std::string &name) const {
    fs::create_directories(fs::path(at(name)).parent_path());
    std::ofstream(at(name)) << "text";
    return at(name);
  }
  std::string link(const std::string &name, const std::string &target) const {
    fs::create_directories(fs::path(at(name)).parent_path());
    fs::remove_all(at(name));
    fs::create_symlink(target, at(name));
    return at(name);
  }

  Place &plan() {
    view = plan_view(request);
    return *this;
  }
  std::optional<Kind> kind(const std::string &path) const {
    for (const ViewStep &step : view.steps)
      if (step.path == path) return step.kind;
    return std::nullopt;
  }
  bool grants(const std::string &path, bool writable = true) const {
    return std::any_of(view.steps.begin(), view.steps.end(), [&](const ViewStep &step) {
      return step.kind == Kind::bind && step.path == path && step.writable == writable;
    });
  }
  // Returns true if a grant makes the path accessible.
  bool reaches(const std::string &path) const {
    return std::any_of(view.steps.begin(), view.steps.end(), [&](const ViewStep &step) {
      return step.kind == Kind::bind && !step.instead &&
             (is_within(path, step.path) || is_within(step.path, path) ||
              is_within(path, step.source) || is_within(step.source, path));
    });
  }
  // Returns true if the path or a part of it is visible: no hidden folder or file takes its place.
  bool shows(const std::string &path) const {
    return std::any_of(view.steps.begin(), view.steps.end(), [&](const ViewStep &step) {
      return step.kind != Kind::empty_folder && step.kind != Kind::empty_file &&
             is_within(step.path, path);
    });
  }
  bool notes(const std::string &start) const {
    return std::any_of(view.notes.begin(), view.notes.end(),
                       [&](const std::string &line) { return line.starts_with(start); });
  }
  bool reports(const std::string &start) const {
    return std::any_of(view.ignored.begin(), view.ignored.end(),
                       [&](const std::string &line) { return line.starts_with(start); });
  }
};

}  // namespace

TEST_CASE("a name that a server can replace by a link does not grant the link's target") {
  const Mode mode = GENERATE(Mode::home_read_only, Mode::strict);
  const std::string target = GENERATE(".ssh/id_rsa", ".ssh", ".bashrc", "project", "not-there");
  Place p;
  p.policy.mode = mode;
  p.file(".bashrc");
  p.file("project/file");
  p.file("data/other.db");
  const std::string named = p.link("data/app.db", p.at(target));
  SECTION("as an argument") {
    p.policy.args = {"--db", named};
  }
  SECTION("after an option") {
    p.policy.args = {"--db=" + named};
  }
  SECTION("as a variable") {
    p.policy.env_values = {named};
  }
  SECTION("with its folder, which follows") {
    p.policy.args = {named, p.at("data")};
  }
  SECTION("with another file in its folder") {
    p.policy.args = {named, p.at("data/other.db")};
  }
  SECTION("through another name of the folder") {
    p.policy.args = {p.at("alias/app.db"), p.at("data")};
    p.link("alias", "data");
  }
  SECTION("in a folder that the definition makes writable") {
    p.policy.read = {named};
    p.policy.write = {p.at("data")};
  }
  SECTION("in the working directory") {
    p.policy.read = {named};
    p.policy.cwd = p.at("data");
  }
  SECTION("in a folder that another server can change") {
    p.policy.read = {named};
    p.request.changeable = {p.at("data")};
  }
  p.plan();
  INFO(target << (mode == Mode::strict ? " strict" : ""));
  CHECK_FALSE(p.reaches(p.at(target)));
  CHECK_FALSE(p.grants(p.home));
  CHECK(p.view.ignored.size() == 1);
  CHECK((p.reports(named) || p.reports(p.at("alias/app.db"))));
}

TEST_CASE("a parent of a named path that a server can replace by a link grants nothing") {
  const Mode mode = GENERATE(Mode::home_read_only, Mode::strict);
  const std::string target = GENERATE(".ssh", "project", "");
  Place p;
  p.policy.mode = mode;
  p.file(".ssh/x/file");
  p.file("project/x/file");
  p.file("x/file");
  p.file("data/sub/other");
  p.link("data/sub", p.at(target));
  const std::string named = p.at("data/sub/x");
  SECTION("before its parent") {
    p.policy.args = {named, p.at("data")};
  }
  SECTION("after its parent") {
    p.policy.args = {p.at("data"), named};
  }
  SECTION("with a file in the parent") {
    p.policy.args = {named, p.file("data/app.db")};
  }
  SECTION("with a missing file in the parent") {
    p.policy.args = {named, p.at("data/app.db")};
  }
  SECTION("with a replaced file in the parent") {
    p.policy.args = {named, p.link("data/app.db", "sub/x/file")};
  }
  SECTION("as the working directory") {
    p.policy.cwd = named;
    p.request.changeable = {p.at("data")};
  }
  SECTION("to be read") {
    p.policy.read = {named};
    p.policy.write = {p.at("data")};
  }
  SECTION("to be written") {
    p.policy.write = {named, p.at("data")};
  }
  SECTION("if it is unknown which folders servers can change") {
    p.policy.args = {named};
    p.request.distrust_links = true;
  }
  p.plan();
  CHECK_FALSE(p.reaches(p.at(target.empty() ? "x" : target + "/x")));
  CHECK(p.reports(named + " leads to "));
}

TEST_CASE("links that no server could have created are followed") {
  const Mode mode = GENERATE(Mode::home_read_only, Mode::strict);
  Place p;
  p.policy.mode = mode;
  p.file("dotfiles/tool.json");
  p.file("dotfiles/aws/credentials");
  p.file("disk/vault/note");
  p.file("work/v2/file");
  p.link(".config/tool.json", "../dotfiles/tool.json");
  p.link(".aws", "dotfiles/aws");
  p.link("vault", p.at("disk/vault"));
  p.link("work/current", "v2");
  p.link("work/new.db", "v2/new.db");
  p.link("bin/tool", "../code/bin/tool.js");
  p.file("code/bin/tool.js");
  p.policy.args = {p.at(".config/tool.json"), p.at("vault/note"), p.at("work/current"),
                   p.at("bin/tool")};
  p.policy.read = {p.at(".aws/credentials")};
  p.policy.write = {p.at("vault")};
  p.plan();
  CHECK(p.view.ignored.empty());
  CHECK(p.grants(p.at("dotfiles/tool.json")));
  CHECK(p.grants(p.at("dotfiles/aws/credentials"), false));
  CHECK(p.grants(p.at("disk/vault")));
  CHECK(p.grants(p.at("work/v2")));
  if (mode == Mode::strict) CHECK(p.grants(p.at("code"), false));
  p.policy.args = {p.at("work/new.db")};
  p.plan();
  CHECK(p.view.ignored.empty());
  CHECK(p.grants(p.at("work/v2")));
}

TEST_CASE("a link grants a credential or a home directory only if the link is its name") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.link("keys", ".ssh");
  p.link("all", ".");
  p.link("key", ".ssh/id_rsa");
  p.file("dotfiles/gh/hosts.yml");
  p.link(".config/gh", "../dotfiles/gh");
  p.link("token", "dotfiles/gh/hosts.yml");
  fs::create_directory_symlink(p.home, p.folder + "/me");
  p.policy.read = {p.at("keys"), p.at("key"), p.at("token"), p.at("all"), p.folder + "/me/.aws"};
  p.plan();
  CHECK_FALSE(p.reaches(p.at(".ssh")));
  CHECK_FALSE(p.reaches(p.at("dotfiles/gh")));
  CHECK_FALSE(p.grants(p.home, false));
  CHECK(p.view.ignored.size() == 5);
  p.policy.read = {p.at(".config/gh/hosts.yml")};
  p.policy.write = {p.at(".ssh")};
  p.policy.args = {p.home};
  p.plan();
  CHECK(p.view.ignored.empty());
  CHECK(p.grants(p.at("dotfiles/gh/hosts.yml"), false));
  CHECK(p.grants(p.at(".ssh")));
  CHECK(p.grants(p.home));
  // HOME may be a link itself.
  p.request.home = p.folder + "/me";
  p.policy.read = {p.folder + "/me/.aws"};
  p.policy.args = {p.folder + "/me"};
  p.plan();
  CHECK(p.view.ignored.empty());
  CHECK(p.grants(p.at(".aws"), false));
  CHECK(p.grants(p.home));
}

TEST_CASE("a program that a server can replace by a link shows no credential and no project") {
  Place p;
  p.policy.mode = Mode::strict;
  p.file("project/package.json");
  p.file("project/private");
  p.file("project/run");
  p.file("python/bin/python3");
  p.file("data/x");
  p.policy.args = {p.at("data")};
  p.request.program = p.link("data/run", p.at(".ssh/id_rsa"));
  CHECK_FALSE(p.plan().reaches(p.at(".ssh")));
  p.request.program = p.link("data/run", p.at("project/run"));
  CHECK_FALSE(p.plan().reaches(p.at("project/private")));
  CHECK(p.grants(p.at("project/run"), false));
  p.request.program = p.link("data/run", p.at("python/bin/python3"));
  CHECK(p.plan().grants(p.at("python"), false));
}

TEST_CASE("code behind the user's links has only its real path, at which its secrets are hidden") {
  Place p;
  p.policy.mode = Mode::strict;
  const std::string data = p.folder + "/data/projects";
  for (const char *name : {"/package.json", "/src/main.js", "/mcp/gateway.json"}) {
    fs::create_directories(fs::path(data + name).parent_path());
    std::ofstream(data + name) << "text";
  }
  p.link("links/projects", data);
  p.link("projects", "links/projects");
  p.link("tools/bin/tool", p.at("hop"));
  p.link("hop", "projects/src/main.js");
  p.request.own = {data + "/mcp/gateway.json"};
  SECTION("as the program") {
    fs::permissions(data + "/src/main.js", fs::perms::owner_all);
    p.request.program = p.at("tools/bin/tool");
    p.policy.args = {p.at("projects/src/main.js")};
  }
  SECTION("as arguments") {
    p.policy.args = {p.at("tools/bin/tool"), p.at("projects/src/main.js")};
  }
  p.plan();
  CHECK(p.view.ignored.empty());
  CHECK(p.grants(data, false));
  CHECK(p.grants(p.at("tools"), false));
  // It is not part of the mirror of its folder.
  CHECK(p.kind(data + "/mcp") == Kind::mirror);
  CHECK_FALSE(p.shows(data + "/mcp/gateway.json"));
  std::vector<std::string> links;
  for (const ViewStep &step : p.view.steps) {
    INFO(step.path);
    if (step.kind == Kind::link) links.push_back(step.path + " " + step.source);
    if (step.kind == Kind::bind) CHECK((step.instead || step.path == step.source));
  }
  for (const std::string &link :
       {p.at("links/projects") + " " + data, p.at("projects") + " links/projects",
        p.at("hop") + " projects/src/main.js"}) {
    INFO(link);
    CHECK(std::count(links.begin(), links.end(), link) == 1);
  }
}

TEST_CASE("the parents of hidden and read-only paths in a writable folder are mount points") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  fs::create_directories(p.folder + "/projects/a/b/mcp");
  const std::string top = p.folder + "/projects", profile = top + "/a/b/mcp/gateway.json";
  std::ofstream(profile) << "text";
  p.request.own = {profile};
  p.file(".config/git/credentials");
  p.file("work/x/y/file");
  p.policy.args = {top, p.at(".config")};
  p.policy.read = {p.at("work/x/y/file")};
  p.policy.write = {p.at("work")};
  p.plan();
  for (const std::string &path : {top, top + "/a", top + "/a/b", p.at(".config"),
                                  p.at(".config/git"), p.at("work/x"), p.at("work/x/y")}) {
    INFO(path);
    CHECK(p.grants(path));
  }
  // A file that replaces the gateway's file is not visible.
  CHECK(p.kind(top + "/a/b/mcp") == Kind::mirror);
  CHECK_FALSE(p.kind(profile).has_value());
  CHECK(p.view.notes.empty());
  CHECK(p.kind(p.at(".config/git/credentials")) == Kind::empty_file);
  CHECK(p.grants(p.at("work/x/y/file"), false));
}

TEST_CASE("a user's link in a folder above the gateway's file is followed at every start") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file("work/a/mcp/gateway.json");
  p.file("work/a/b/c/gateway.json");
  p.file("work/shared/data.db");
  p.link("work/a/current", "../shared");
  p.request.own = {p.at("work/a/mcp/gateway.json"), p.at("work/a/b/c/gateway.json")};
  p.policy.args = {p.at("work"), p.at("work/a/current/data.db")};
  GrantRecord record{std::string()};
  for (int start = 0; start < 2; ++start) {
    INFO(start);
    p.request.changeable.clear();
    record.add_to(&p.request);
    p.plan();
    CHECK(p.view.ignored.empty());
    CHECK(p.grants(p.at("work/a")));
    CHECK(p.grants(p.at("work/a/b")));
    CHECK(p.grants(p.at("work/shared")));
    REQUIRE(record.add(p.view));
  }
  CHECK(p.request.changeable == std::vector<std::string>{p.at("work"), p.at("work/shared")});
}

TEST_CASE("a server for which too many folders would have to be mounted is not started") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.policy.args = {p.at("work"), p.at(".config")};
  p.file(".config/x");
  const auto chain = [&](std::size_t length) {
    std::string path = "work";
    for (std::size_t i = 0; i < length; ++i) path += "/d";
    fs::create_directories(p.at(path));
    p.link(".config/gh", "../" + path);  // a server can create this link
    p.plan();
    return std::count_if(p.view.steps.begin(), p.view.steps.end(),
                         [](const ViewStep &step) { return step.pin; });
  };
  CHECK(chain(257) == 256);
  CHECK(p.view.refused.empty());
  for (const std::size_t length : {258, 1000}) {
    CHECK(chain(length) == 0);
    CHECK(p.view.refused.starts_with("more than 256 folders in " + p.at("work") + " contain "));
  }
  p.policy.args = {p.at(".config")};
  p.plan();
  CHECK(p.view.refused.empty());
}

TEST_CASE("a server cannot replace a link to the gateway's configuration") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file("dotfiles/gateway.json");
  p.file("work/other/file");
  p.link("work/mcp/gateway.json", p.at("dotfiles/gateway.json"));
  p.request.own = {p.at("work/mcp/gateway.json")};
  p.policy.args = {p.at("work"), p.at("dotfiles")};
  p.plan();
  CHECK(p.grants(p.at("work")));
  CHECK(p.grants(p.at("work/mcp"), false));
  CHECK(p.grants(p.at("dotfiles")));
  CHECK(p.kind(p.at("dotfiles/gateway.json")) == Kind::empty_file);
  CHECK(p.view.notes.size() == 2);  // one for the link, one for the folder of the file
  p.request.own = {p.at("work/missing/sub/gateway.json"), p.at("elsewhere/gateway.json")};
  p.plan();
  CHECK(p.grants(p.at("work"), false));
  CHECK(p.view.notes.size() == 1);
  p.request.own = {p.at("linked/gateway.json")};  // a link to the folder
  p.link("work/link", "../dotfiles");
  p.link("linked", "work/link");
  p.plan();
  CHECK(p.grants(p.at("work"), false));
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
  // A server cannot cause this through its own HOME.
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
  p.file("work/gateway.json");
  p.request.own = {p.at("work/gateway.json")};
  p.policy.args = {part, whole + "/home", p.folder + "/mnt"};
  p.plan();
  CHECK_FALSE(p.kind(p.at("work/gateway.json")).has_value());
  CHECK(p.kind(whole + "/home/work") == Kind::mirror);
  CHECK_FALSE(p.kind(whole + "/home/work/gateway.json").has_value());
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
  p.file("work/file");
  p.request.own = {p.at(".config/bulkhead"), p.at("state")};
  p.link("gone", ".");
  p.policy.home = p.link("work/home", p.at(target));
  p.policy.env_values = {p.policy.home};
  SECTION("in a folder that is named") {
    p.policy.args = {p.at("work")};
  }
  SECTION("in a folder that another server can change") {
    p.request.changeable = {p.at("work")};
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
  p.file("work/kept/gh/hosts.yml");
  p.link(".config/gh", p.at("work/kept/gh"));
  p.request.own = {p.file("work/mcp/gateway.json")};
  const std::vector<std::string> closed = {p.at(".config/git"), p.at("work/kept"),
                                           p.at("work/mcp")};
  KnownPlaces places;
  p.request.places = &places;
  const auto search = [&](bool may) {
    for (const std::string &path : closed) {
      fs::permissions(path, may ? fs::perms::owner_all : fs::perms::none);
    }
  };
  p.policy.args = {p.at(".config"), p.at("work")};
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
  CHECK(p.grants(p.at("work")));
  CHECK(p.view.keep_hidden == std::vector<std::string>{p.at("work/kept/gh")});
  // The folder is not granted.
  p.policy.args = {p.at(".config/git"), p.at(".config/git/credentials")};
  p.policy.write = {p.at("work/kept"), p.at("work/kept/gh/hosts.yml")};
  p.plan();
  search(true);
  for (const std::string &path : closed) {
    INFO(path);
    CHECK_FALSE(p.shows(path));
  }
  CHECK_FALSE(p.grants(p.at(".config/git")));
  CHECK(p.view.ignored.size() == 4);
  CHECK(p.reports("the gateway may not search the folder " + p.at("work/kept")));
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
