// Tests which folders a planned view makes visible with program files and with data files that look
// like programs.
#include "sandbox/child_view_place.hpp"

using namespace bulkhead;

namespace {

// Makes a file executable, as a server can do with a file that it may write.
void make_program(const std::string &path) {
  std::ofstream(path) << "#!/bin/sh\n";
  fs::permissions(path, fs::perms::owner_all);
}

}  // namespace

TEST_CASE("a data file that a server turns into a program shows nothing beside it") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  const std::string name = GENERATE(".config/gcloud/adc.json", ".kube/config", ".aws/credentials",
                                    ".ssh/id_rsa", ".claude/plugins/x/state", ".config/tool.json");
  for (const char *other : {".config/gcloud/credentials.db", ".kube/other", ".aws/config",
                            ".ssh/id_other", ".claude/plugins/x/package.json", ".config/other"}) {
    p.file(other);
  }
  const std::string file = p.file(name), folder = parent_of(file);
  SECTION("in a variable") {
    p.policy.env_values = {file};
  }
  SECTION("after an option") {
    p.policy.args = {"--file=" + file};
  }
  INFO(name);
  p.plan();
  CHECK(p.grants(file));
  make_program(file);
  p.plan();
  CHECK_FALSE(p.grants(file));
  CHECK_FALSE(p.grants(folder, false));
  for (const auto &entry : fs::directory_iterator(folder)) {
    const std::string other = entry.path().string();
    INFO(other);
    if (other != file && !(name == ".config/tool.json" && p.policy.mode == Mode::home_read_only)) {
      CHECK_FALSE(p.reaches(other));
      CHECK_FALSE(p.shows(other));
    }
  }
  const bool covered = p.policy.mode == Mode::strict || name != ".config/tool.json";
  CHECK(p.notes("its program may need the folder ") == covered);
}

TEST_CASE("a server cannot enlarge the visible part of a project in a folder that it can change") {
  Place p;
  p.policy.mode = Mode::strict;
  p.file("work/package.json");
  p.file("work/.env");
  p.file("work/data/package.json");
  SECTION("by turning its data file into a program") {
    const std::string file = p.file("work/data/app.db");
    make_program(file);
    p.policy.args = {"--db=" + file};
  }
  SECTION("by turning its data file in a folder \"bin\" into a program") {
    const std::string file = p.file("work/data/bin/app.db");
    fs::remove(p.at("work/data/package.json"));
    make_program(file);
    p.policy.args = {"--db=" + file};
  }
  SECTION("by removing the file that marks the package") {
    p.policy.args = {p.file("work/data/deep/app.py")};
    CHECK(p.plan().grants(p.at("work/data"), false));
    fs::remove(p.at("work/data/package.json"));
    CHECK(p.plan().grants(p.at("work"), false));  // no server can change the folder
  }
  SECTION("of the program") {
    p.request.program = p.file("work/data/deep/run");
    fs::remove(p.at("work/data/package.json"));
  }
  p.request.changeable = {p.at("work/data"), p.at("work/data/deep")};
  p.plan();
  CHECK_FALSE(p.reaches(p.at("work/.env")));
  CHECK_FALSE(p.grants(p.at("work"), false));
  p.request.distrust_links = true;
  p.request.changeable.clear();
  p.plan();
  CHECK_FALSE(p.reaches(p.at("work/.env")));
}

TEST_CASE("a program in or around a hidden path is shown alone") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.file(".fly/config.yml");
  p.file(".ssh/id_other");
  p.file(".fly/bin/other");
  p.policy.args = {p.file(".ssh/proxy.py"), p.file(".fly/x.js")};
  p.request.program = p.file(".fly/bin/flyctl");
  p.plan();
  for (const std::string &path : {p.policy.args[0], p.policy.args[1], p.request.program}) {
    INFO(path);
    CHECK(p.grants(path, false));
  }
  for (const char *name : {".fly/config.yml", ".ssh/id_other", ".fly/bin/other", ".ssh/id_rsa"}) {
    INFO(name);
    CHECK_FALSE(p.reaches(p.at(name)));
    CHECK_FALSE(p.shows(p.at(name)));
  }
  CHECK(p.notes("its program may need the folder " + p.at(".fly")));
  CHECK(p.notes("its program may need the folder " + p.at(".ssh")));
}

TEST_CASE("programs of honest users are shown with the files that they need") {
  Place p;
  p.policy.mode = Mode::strict;
  // Extensions of coding agents are packages in a hidden folder.
  p.file(".gemini/extensions/x/package.json");
  p.file(".gemini/oauth_creds.json");
  p.file(".claude/local/node_modules/.bin/claude");
  p.file(".claude/history");
  p.file(".cargo/bin/uv");
  p.file(".local/bin/uv");
  p.file("tool/lib/code");
  p.policy.args = {p.file(".gemini/extensions/x/dist/server.js"), p.file(".cargo/bin/uvx.sh"),
                   p.file(".local/bin/uvx.sh"), p.file("tool/bin/tool")};
  make_program(p.policy.args[3]);
  p.request.program = p.file(".claude/local/claude");
  p.file(".claude/local/package.json");
  p.plan();
  for (const char *name :
       {".gemini/extensions/x", ".claude/local", ".cargo/bin", ".local/bin", "tool"}) {
    INFO(name);
    CHECK(p.grants(p.at(name), false));
  }
  CHECK_FALSE(p.reaches(p.at(".gemini/oauth_creds.json")));
  CHECK_FALSE(p.reaches(p.at(".claude/history")));
}

TEST_CASE("a data file is writable even if every file of its file system is executable") {
  Place p;
  p.policy.mode = GENERATE(Mode::home_read_only, Mode::strict);
  p.policy.args = {"--db=" + p.file("data/app.db"), p.file(".config/tool.json"), p.file("empty/x")};
  std::ofstream(p.at("empty/x")).flush();
  for (const char *name : {"data/app.db", ".config/tool.json", "empty/x"}) {
    fs::permissions(p.at(name), fs::perms::all);
  }
  p.plan();
  CHECK(p.grants(p.at("data")));
  CHECK(p.grants(p.at("empty")));
  CHECK(p.grants(p.at(".config/tool.json")));
  // Programs stay read-only.
  for (const char *start : {"#!/bin/sh", "\177ELF", "MZ"}) {
    std::ofstream(p.at("data/app.db")) << start;
    p.plan();
    CHECK_FALSE(p.grants(p.at("data")));
    CHECK_FALSE(p.grants(p.at("data/app.db")));
  }
}
