// Tests that no view lets a server change the gateway's executable or plugins. child_view_test.cpp
// tests the other paths of a view.
#include <sched.h>
#include <sys/mount.h>

#include "sandbox/child_view_place.hpp"

using namespace bulkhead;

namespace {

// A gateway that was built in src/build.
void build_gateway(Place *p) {
  p->file("src/main.cpp");
  p->request.programs = {p->file("src/build/bin/bulkhead"), p->at("src/build/lib/plugins"),
                         p->file("src/mine/policy-mine.so")};
  p->file("src/build/lib/plugins/connector-stdio.so");
}

}  // namespace

TEST_CASE("a server cannot change the gateway's programs in a folder that it is granted") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  build_gateway(&p);
  p.file("src/build/bin/other");
  SECTION("as an argument") {
    p.policy.args = {p.at("src")};
  }
  SECTION("in sandbox_paths, together with the programs") {
    p.policy.write = {p.at("src"), p.at("src/build/bin/bulkhead"), p.at("src/build/lib/plugins"),
                      p.at("src/build/lib/plugins/connector-stdio.so")};
  }
  SECTION("after a link to it") {
    p.policy.args = {p.link("alias", p.at("src"))};
  }
  p.plan();
  CHECK(p.grants(p.at("src")));
  for (const char *kept : {"src/build/bin", "src/build/lib/plugins", "src/mine"}) {
    INFO(kept);
    CHECK(p.grants(p.at(kept), false));
  }
  // A server cannot move these folders away.
  for (const char *pinned : {"src/build", "src/build/lib"}) CHECK(p.grants(p.at(pinned)));
  for (const ViewStep &step : p.view.steps) {
    const bool inside = is_within(step.path, p.at("src/build/bin")) ||
                        is_within(step.path, p.at("src/build/lib/plugins"));
    if (inside) CHECK_FALSE(step.writable);
  }
  CHECK(p.notes("it cannot change " + p.at("src/build/bin")));
  CHECK(p.view.notes.size() == 1);
}

TEST_CASE("a folder that contains a program stays writable if the definition names it") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.request.programs = {p.file("tools/bulkhead"), p.file("plugins/a.so"), p.file("other/b.so")};
  p.policy.args = {p.at("tools"), p.at("plugins")};
  p.plan();
  for (const char *folder : {"tools", "plugins"}) CHECK(p.grants(p.at(folder)));
  for (const char *file : {"tools/bulkhead", "plugins/a.so"}) CHECK(p.grants(p.at(file), false));
  CHECK(p.notes("it cannot change " + p.at("plugins/a.so") + ", " + p.at("tools/bulkhead") + ","));
  CHECK(p.view.notes.size() == 1);
}

TEST_CASE("a server cannot create a missing program, or replace a link to one") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file("src/data/file");
  p.file("installed/v1/plugins/a.so");
  p.link("src/current/plugins", p.at("installed/v1/plugins"));
  fs::create_directories(p.at("src/later/lib"));
  p.request.programs = {p.at("src/current/plugins"), p.at("src/later/lib/plugins/x.so")};
  p.policy.args = {p.at("src"), p.at("installed")};
  p.plan();
  CHECK(p.grants(p.at("src")));
  CHECK(p.grants(p.at("src/current"), false));
  CHECK(p.grants(p.at("src/later/lib"), false));
  CHECK(p.grants(p.at("installed/v1/plugins"), false));
}

TEST_CASE("the gateway's programs do not change the view of a server that may not write them") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  build_gateway(&p);
  p.file("work/file");
  p.policy.args = {p.at("work")};
  p.policy.read = {p.at("src")};
  const std::vector<std::string> programs = std::exchange(p.request.programs, {});
  const std::size_t steps = p.plan().view.steps.size();
  p.request.programs = programs;
  p.plan();
  CHECK(p.view.steps.size() == steps);
  CHECK(p.view.notes.empty());
}

TEST_CASE("a server cannot change a plugin in a folder of its own, nor create one there") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file("plugins/mine/mine.so");
  p.file("plugins/mine/data/file");
  p.request.programs = {p.at("plugins")};
  SECTION("in a folder that is granted") {
    p.policy.write = {p.at("plugins/mine")};
  }
  SECTION("in a file that is granted") {
    p.policy.write = {p.at("plugins/mine/mine.so")};
  }
  p.plan();
  for (const ViewStep &step : p.view.steps) {
    if (is_within(step.path, p.at("plugins"))) CHECK_FALSE(step.writable);
  }
}

TEST_CASE("a second mount of the gateway's programs is read-only, too") {
  if (::geteuid() != 0) return;  // only root may mount
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  build_gateway(&p);
  fs::create_directories(p.folder + "/again");
  const std::string again = p.folder + "/again";
  if (::unshare(CLONE_NEWNS) != 0) return;
  REQUIRE(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
  REQUIRE(::mount(p.at("src").c_str(), again.c_str(), nullptr, MS_BIND, nullptr) == 0);
  p.policy.args = {again};
  p.plan();
  CHECK(p.grants(again));
  CHECK(p.grants(again + "/build/bin", false));
  CHECK(p.grants(again + "/build/lib/plugins", false));
  CHECK(::umount2(again.c_str(), MNT_DETACH) == 0);
}
