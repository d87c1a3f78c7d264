// Tests which paths a planned view grants if named paths contain symbolic links, which servers may
// have created.
#include <sys/resource.h>

#include <functional>

#include "sandbox/child_view_place.hpp"

using namespace bulkhead;

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
  p.file("granted/v2/file");
  p.link(".config/tool.json", "../dotfiles/tool.json");
  p.link(".aws", "dotfiles/aws");
  p.link("vault", p.at("disk/vault"));
  p.link("granted/current", "v2");
  p.link("granted/new.db", "v2/new.db");
  p.link("bin/tool", "../code/bin/tool.js");
  p.file("code/bin/tool.js");
  p.policy.args = {p.at(".config/tool.json"), p.at("vault/note"), p.at("granted/current"),
                   p.at("bin/tool")};
  p.policy.read = {p.at(".aws/credentials")};
  p.policy.write = {p.at("vault")};
  p.plan();
  CHECK(p.view.ignored.empty());
  CHECK(p.grants(p.at("dotfiles/tool.json")));
  CHECK(p.grants(p.at("dotfiles/aws/credentials"), false));
  CHECK(p.grants(p.at("disk/vault")));
  CHECK(p.grants(p.at("granted/v2")));
  if (mode == Mode::strict) CHECK(p.grants(p.at("code"), false));
  p.policy.args = {p.at("granted/new.db")};
  p.plan();
  CHECK(p.view.ignored.empty());
  CHECK(p.grants(p.at("granted/v2")));
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
  // The gateway's file is not part of the mirror of its folder.
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

namespace {

// Creates a deep folder with a chain of links in it, as a server can do in a folder that it may
// write. Returns the first link.
std::string chain_of_links(const Place &p, const std::string &name) {
  std::string deep = p.at(name);
  for (int i = 0; i < 150; ++i) deep += "/d";
  fs::create_directories(deep);
  for (int i = 0; i < 30; ++i) {
    fs::create_symlink(i == 29 ? deep : deep + "/" + std::to_string(i + 1),
                       deep + "/" + std::to_string(i));
  }
  return deep + "/0";
}

}  // namespace

TEST_CASE("a name that leads through a long chain of links is not granted") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  const std::string first = chain_of_links(p, "granted");
  for (const char *name : {"granted/db0", "granted/db1", "granted/db2"}) {
    p.policy.args.push_back(p.link(name, first));
  }
  p.policy.args.push_back(p.file("project/file"));
  p.policy.env_values = {p.at("granted/db0/missing")};
  SECTION("as the program, too") {
    p.request.program = p.at("granted/db0");
    p.policy.cwd = p.at("granted/db1");
  }
  SECTION("in a folder that another server can change") {
    p.request.changeable = {p.at("granted")};
  }
  p.plan();
  CHECK(p.view.refused.empty());
  CHECK(p.grants(p.at("project")));
  CHECK_FALSE(p.reaches(p.at("granted/d")));
  for (const std::string &name : {p.policy.args[0], p.policy.args[1], p.policy.args[2],
                                  p.policy.env_values[0], p.request.program}) {
    INFO(name);
    CHECK((name == "/bin/sh" || p.reports("it is not known where " + name + " leads")));
  }
}

TEST_CASE("a server is not started if it is unknown where a hidden path leads") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  const std::string first = chain_of_links(p, "granted");
  KnownPlaces places;
  p.request.places = GENERATE(false, true) ? &places : nullptr;
  p.policy.args = {p.at(".config"), p.at("granted")};
  p.file(".config/other");
  p.plan();
  CHECK(p.view.refused.empty());
  std::string name;
  SECTION("a credential") {
    name = p.link(".config/gh", first);
  }
  SECTION("of several, the first one") {
    name = p.link(".config/op", first);
    p.link(".config/gh", first);
  }
  SECTION("a folder above a credential") {
    p.link(".config/git", first);
    name = p.at(".config/git");
  }
  SECTION("a file of the gateway") {
    name = p.link("granted/gateway.json", first);
    p.request.own = {name};
  }
  SECTION("the definition's HOME") {
    name = p.policy.home = p.link("granted/home", first);
  }
  SECTION("a credential in the definition's HOME") {
    p.policy.home = p.at("granted/home");
    name = p.link("granted/home/.ssh", first);
  }
  places.refresh(KnownPlaces::fresh_ns * 4);
  p.plan();
  INFO(name << ": " << p.view.refused);
  CHECK(p.view.refused.starts_with("it is not known where " + name + " leads"));
}

// The look-up of a path that is not deep visits a quadratic number of folders (HiddenPaths::add()).
TEST_CASE("deep hidden paths that do not exist do not use up the budget") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  KnownPlaces places;
  p.request.places = GENERATE(false, true) ? &places : nullptr;
  const int depth = GENERATE(8, 24, 60);
  std::string inside;
  for (int i = 0; i < depth; ++i) inside += "/d";
  for (int i = 0; i < 200; ++i) {
    p.request.also_hidden.push_back(p.at("granted") + "/" + std::to_string(i) + inside);
  }
  p.file("granted/file");
  p.policy.args = {p.at("granted")};
  p.plan();
  CHECK(p.view.refused.empty());
  // A path that exists is hidden.
  p.file("granted/7" + inside);
  places.refresh(KnownPlaces::fresh_ns * 4);
  p.plan();
  CHECK(p.view.refused.empty());
  CHECK(p.kind(p.at("granted/7") + inside) == Kind::empty_file);
}

TEST_CASE("a server is not started if file descriptors are lacking while its view is planned") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  KnownPlaces places;
  p.request.places = &places;
  p.file(".config/other");
  p.policy.args = {p.at(".config"), p.file("granted/file")};
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  p.plan();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK_FALSE(p.view.refused.empty());
  if (p.policy.mode == Mode::strict) CHECK(p.view.refused.starts_with("the entries of / could"));
  // Other users cannot read the host's keys.
  if (fs::exists("/etc/ssh") && p.request.user == 0) {
    CHECK(p.kind("/etc/ssh") == Kind::empty_folder);
  }
  p.plan();
  CHECK(p.view.refused.empty());
  CHECK_FALSE(p.kind("/etc/ssh") == Kind::empty_folder);
  CHECK(p.grants(p.at(".config")));
}
