// Tests the code that evaluates symbolic links and other names of folders: PathWalk, LinkRule,
// GrantRecord and MountTable.
#include "sandbox/link_rule.hpp"

#include <sys/resource.h>

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "sandbox/grant_record.hpp"
#include "sandbox/paths.hpp"
#include "sandbox/same_mounts.hpp"

using namespace bulkhead;

namespace {

namespace fs = std::filesystem;

// A temporary folder.
struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/bulkhead-links-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = real_path(name);
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string file(const std::string &name) const {
    const std::string at = path + "/" + name;
    fs::create_directories(fs::path(at).parent_path());
    std::ofstream(at) << "text";
    return at;
  }
  std::string link(const std::string &name, const std::string &target) const {
    const std::string at = path + "/" + name;
    fs::create_directories(fs::path(at).parent_path());
    fs::create_symlink(target, at);
    return at;
  }
};

}  // namespace

TEST_CASE("a walk reports each link and the same end as the kernel") {
  const Folder f;
  f.file("a/b/file");
  f.link("to-a", "a");
  f.link("a/up", "../to-a/b");
  f.link("absolute", f.path + "/a/up/file");
  for (const char *name :
       {"a/b/file", "to-a/b/file", "to-a/up/file", "absolute", "a/../to-a/./up"}) {
    const PathWalk walk = walk_path(f.path + "/" + name);
    INFO(name);
    CHECK(walk.exists);
    CHECK(walk.end == real_path(f.path + "/" + name));
  }
  const PathWalk walk = walk_path(f.path + "/absolute");
  REQUIRE(walk.links.size() == 3);
  CHECK(walk.links[0].at == f.path + "/absolute");
  CHECK(walk.links[0].last);
  CHECK(walk.links[1].at == f.path + "/a/up");
  CHECK_FALSE(walk.links[1].last);
  CHECK(walk.links[2].at == f.path + "/to-a");
  CHECK(walk_path(f.path + "/a/b/file").links.empty());
}

TEST_CASE("a walk reports where a missing path would be") {
  const Folder f;
  f.link("dangling", "there/file");
  f.link("loop", "loop");
  f.file("file");
  const PathWalk dangling = walk_path(f.path + "/dangling");
  CHECK_FALSE(dangling.exists);
  CHECK(dangling.end == f.path + "/there/file");
  CHECK(dangling.links.size() == 1);
  const PathWalk below = walk_path(f.path + "/dangling/x");
  CHECK(below.end == f.path + "/there/file/x");
  CHECK_FALSE(walk_path(f.path + "/loop").exists);
  CHECK_FALSE(walk_path(f.path + "/file/below").exists);
  CHECK(walk_path("/").end == "/");
}

TEST_CASE("a walk is given up if it has too many components") {
  const Folder f;
  const auto depth = static_cast<std::size_t>(std::count(f.path.begin(), f.path.end(), '/'));
  std::string deep = f.path;
  for (std::size_t i = depth; i < PathWalk::most_components; ++i) deep += "/d";
  fs::create_directories(deep + "/d");
  CHECK(walk_path(deep).exists);
  CHECK(walk_path(deep).end == real_path(deep));
  CHECK_FALSE(walk_path(deep).given_up);
  // The last of several links exceeds the limit.
  f.link("first", "second");
  f.link("second", deep);
  for (const std::string &path : {deep + "/d", f.path + "/first", f.path + "/second/missing"}) {
    const PathWalk walk = walk_path(path);
    CHECK(walk.given_up);
    CHECK_FALSE(walk.exists);
    CHECK(real_path(path).empty());
  }
  CHECK(walk_path(f.path + "/first").links.size() == 2);
  f.file("a/file");
  f.file("b/file");
  WalkBudget budget;
  budget.left = depth + 3;
  CHECK(walk_path(f.path + "/a", &budget).exists);
  CHECK(budget.left == 2);
  CHECK(budget.failed.empty());
  CHECK(walk_path(f.path + "/b", &budget).given_up);
  CHECK(budget.failed == f.path + "/b");
  KnownPlaces places;
  CHECK(places.real(f.path + "/first", &budget).empty());
  CHECK(places.real(f.path + "/a") == f.path + "/a");
}

TEST_CASE("a walk that lacks file descriptors leads to an unknown place") {
  const Folder f;
  f.file("folder/file");
  f.link("link", "folder/file");
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const PathWalk walk = walk_path(f.path + "/link");
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(walk.given_up);
  CHECK_FALSE(walk.exists);
}

TEST_CASE("a link in a folder that servers can change must stay in that folder") {
  const Folder f;
  f.file("granted/sub/file");
  f.file("granted/other");
  f.file("secret");
  f.link("granted/inside", "other");
  f.link("granted/outside", "../secret");
  f.link("granted/sub/up", "../other");
  f.link("granted/away", "..");
  f.link("mine", "secret");
  f.link("alias", "granted");
  LinkRule rule;
  const auto rejects = [&](const std::string &name) {
    const PathWalk walk = walk_path(f.path + "/" + name);
    const PathWalk::Link *link = rule.rejected(walk);
    return link == nullptr ? std::string() : link->at.substr(f.path.size() + 1);
  };
  CHECK(rejects("granted/outside").empty());  // no server can change the folder
  rule.add(f.path + "/granted");
  CHECK(rejects("granted/other").empty());
  CHECK(rejects("granted/inside").empty());
  CHECK(rejects("granted/sub/up").empty());
  CHECK(rejects("mine").empty());
  CHECK(rejects("alias/sub/file").empty());
  CHECK(rejects("granted/outside") == "granted/outside");
  CHECK(rejects("alias/outside") == "granted/outside");
  CHECK(rejects("granted/away/secret") == "granted/away");
  CHECK(rejects("granted/away/missing") == "granted/away");
  const auto can_change = [&](const std::string &name) {
    const PathWalk walk = walk_path(f.path + "/" + name);
    return rule.can_change(walk, walk.links.at(0));
  };
  CHECK(can_change("granted/sub/up"));
  CHECK_FALSE(can_change("alias"));
  CHECK(rule.outermost(f.path + "/granted/sub") == f.path + "/granted");
  CHECK(rule.outermost(f.path).empty());
  // A server that can change only the inner folder must not reach the rest of the outer folder.
  rule.add(f.path + "/granted/sub");
  CHECK(rejects("granted/sub/up") == "granted/sub/up");
  rule.distrust_all();
  CHECK(rejects("mine").empty());  // stays in its folder
  CHECK(rejects("granted/inside").empty());
  f.link("there/mine", "../secret");
  CHECK(rejects("there/mine") == "there/mine");
}

TEST_CASE("the record of granted folders outlives the process and is shared") {
  const Folder f;
  const std::string file = GrantRecord::file_in(f.path);
  fs::create_directories(fs::path(file).parent_path());
  const auto view_of = [](const std::string &folder, bool writable) {
    ChildView view;
    ViewStep &step = view.steps.emplace_back();
    step.path = step.source = folder;
    step.writable = writable;
    return view;
  };
  GrantRecord first(file), second(file);
  REQUIRE(first.add(view_of("/granted/a b\nc", true)));
  REQUIRE(first.add(view_of("/granted/read-only", false)));
  REQUIRE(first.add(view_of("/granted/a b\nc", true)));  // already known
  ChildView pinned = view_of("/granted/a b\nc/sub", true);
  pinned.steps[0].pin = true;  // the user's links in it may lead anywhere in the granted folder
  REQUIRE(first.add(pinned));
  ChildView linked = view_of("/granted/d", true);
  linked.keep_hidden = {"/granted/secret"};
  REQUIRE(second.add(linked));
  for (GrantRecord *record : {&first, &second}) {
    ViewRequest request;
    record->add_to(&request);
    std::sort(request.changeable.begin(), request.changeable.end());
    CHECK(request.changeable == std::vector<std::string>{"/granted/a b\nc", "/granted/d"});
    CHECK(request.also_hidden == std::vector<std::string>{"/granted/secret"});
    CHECK_FALSE(request.distrust_links);
  }
  CHECK(fs::file_size(file) ==
        std::string(" w/granted/a b\nc  w/granted/d  h/granted/secret ").size());
}

TEST_CASE("a record that is full or cannot be written has a safe effect") {
  const Folder f;
  GrantRecord record(f.path + "/missing/file");
  ChildView view;
  view.steps.emplace_back().source = "/granted";
  view.steps[0].writable = true;
  const auto added = record.add(view);
  REQUIRE_FALSE(added);
  CHECK(added.error().text.find(f.path + "/missing/file") != std::string::npos);
  ViewRequest request;
  record.add_to(&request);
  CHECK(request.changeable == std::vector<std::string>{"/granted"});  // in memory

  GrantRecord full{std::string()};
  for (std::size_t i = 0; i <= GrantRecord::most; ++i) {
    view.steps[0].source = "/granted/" + std::to_string(i);
    view.keep_hidden = {"/hidden/" + std::to_string(i)};
    REQUIRE(full.add(view));
  }
  request = {};
  full.add_to(&request);
  CHECK(request.distrust_links);
  CHECK(request.changeable.size() == GrantRecord::most);
  CHECK(request.also_hidden.size() == GrantRecord::most_hidden);
  CHECK(request.also_hidden[0] == "/hidden/0");
  // An invalid file adds nothing.
  std::ofstream(f.path + "/record") << std::string("x/a\0wrelative\0w/unfinished", 25);
  GrantRecord damaged(f.path + "/record");
  request = {};
  damaged.add_to(&request);
  CHECK(request.changeable == std::vector<std::string>{"/a"});
}

namespace {

// Prevents this process from opening files while the object exists.
class NoDescriptors {
 public:
  NoDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit none{0, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors &) = delete;
  NoDescriptors &operator=(const NoDescriptors &) = delete;

 private:
  rlimit before_{};
};

ChildView view_of_folder(const std::string &folder) {
  ChildView view;
  ViewStep &step = view.steps.emplace_back();
  step.path = step.source = folder;
  step.writable = true;
  return view;
}

// Returns what a gateway that starts now reads from the record.
std::vector<std::string> recorded_in(const std::string &file) {
  GrantRecord record(file);
  ViewRequest request;
  record.add_to(&request);
  std::vector<std::string> out = request.changeable;
  out.insert(out.end(), request.also_hidden.begin(), request.also_hidden.end());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("entries that could not be saved are saved with the next start") {
  using Paths = std::vector<std::string>;
  const Folder f;
  const std::string file = f.path + "/folder/record";
  GrantRecord record(file);
  ChildView first = view_of_folder("/granted/a");
  first.keep_hidden = {"/granted/secret"};
  REQUIRE_FALSE(record.add(first));
  fs::create_directories(f.path + "/folder");
  REQUIRE(record.add(first));  // nothing in it is new
  CHECK(recorded_in(file) == Paths{"/granted/a", "/granted/secret"});
  // The disk fills up while an entry is being written: RLIMIT_FSIZE stops the write after eight
  // bytes.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{fs::file_size(file) + 8, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &full) == 0);
  const auto added = record.add(view_of_folder("/granted/long/name"));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK_FALSE(added);
  CHECK(recorded_in(file) == Paths{"/granted/a", "/granted/secret"});
  REQUIRE(record.add(view_of_folder("/granted/b")));
  CHECK(recorded_in(file) ==
        Paths{"/granted/a", "/granted/b", "/granted/long/name", "/granted/secret"});
  // Another process was killed in the middle of an entry.
  std::ofstream(file, std::ios::app) << "w/torn";
  REQUIRE(record.add(view_of_folder("/granted/c")));
  const Paths found = recorded_in(file);
  CHECK(std::count(found.begin(), found.end(), "/granted/c") == 1);
}

TEST_CASE("a record that is deleted while its gateway runs is written again") {
  using Paths = std::vector<std::string>;
  const Folder f;
  const std::string file = f.path + "/record";
  GrantRecord record(file);
  ChildView first = view_of_folder("/granted/a");
  first.keep_hidden = {"/granted/secret"};
  REQUIRE(record.add(first));
  ViewRequest ignored;
  const auto start = [&](const std::string &folder) {
    record.add_to(&ignored);
    REQUIRE(record.add(view_of_folder(folder)));
  };
  fs::remove(file);
  start("/granted/a");
  CHECK(recorded_in(file) == Paths{"/granted/a", "/granted/secret"});
  // Another gateway has replaced it.
  fs::rename(file, file + ".old");
  GrantRecord other(file);
  REQUIRE(other.add(view_of_folder("/another/with/a/long/name/that/makes/the/file/larger")));
  start("/granted/b");
  CHECK(recorded_in(file) == Paths{"/another/with/a/long/name/that/makes/the/file/larger",
                                   "/granted/a", "/granted/b", "/granted/secret"});
}

TEST_CASE("a server that fills the record affects only those that name paths in its folder") {
  const Folder f;
  const bool long_names = GENERATE(true, false);
  const std::string file = f.path + "/record", padding(long_names ? 3'700 : 1, 'x');
  fs::create_directories(f.path + "/hers/sub");
  fs::create_directories(f.path + "/mine");
  fs::create_directories(f.path + "/hers2");
  f.file("mine/data");
  f.link("alias", "hers/sub");
  GrantRecord record(file);
  REQUIRE(record.add(view_of_folder(f.path + "/mine")));
  REQUIRE(record.add(view_of_folder(f.path + "/hers")));
  for (int i = 0; i < 1'000; ++i) {
    REQUIRE(record.add(view_of_folder(f.path + "/hers/" + padding + std::to_string(i))));
  }
  REQUIRE(record.add(view_of_folder(f.path + "/later")));
  ChildView hides;
  for (std::size_t i = 0; i < GrantRecord::most_hidden; ++i) {
    hides.keep_hidden.push_back("/h/" + padding + std::to_string(i));
  }
  REQUIRE(record.add(hides));
  GrantRecord again(file);  // of a gateway that starts now
  for (GrantRecord *one : {&record, &again}) {
    const auto distrusts = [&](const std::function<void(ChildPolicy &, ViewRequest &)> &define) {
      ChildPolicy policy;
      ViewRequest request;
      request.policy = &policy;
      define(policy, request);
      one->add_to(&request);
      CHECK(request.changeable.size() < 3 + GrantRecord::most_inside + 1);
      CHECK(request.changeable.back() == f.path + "/later");
      std::size_t bytes = 0;
      for (const std::string &path : request.also_hidden) bytes += path.size();
      CHECK(request.also_hidden.size() == (long_names ? 8 : GrantRecord::most_hidden));
      CHECK(bytes <= GrantRecord::most_hidden_bytes);
      return request.distrust_links;
    };
    const std::string hers = f.path + "/hers/sub";
    CHECK_FALSE(distrusts([](auto &, auto &) {}));
    CHECK_FALSE(distrusts([&](auto &policy, auto &request) {
      policy.args = {"-v", "relative", f.path + "/mine/data", "--db=" + f.path + "/hers2"};
      policy.read = {f.path + "/mine"};
      request.program = "/bin/sh";
    }));
    CHECK(distrusts([&](auto &policy, auto &) { policy.args = {hers}; }));
    CHECK(distrusts([&](auto &policy, auto &) { policy.args = {"--db=" + f.path + "/alias"}; }));
    CHECK(distrusts([&](auto &policy, auto &) { policy.read = {f.path + "/mine", hers}; }));
    CHECK(distrusts([&](auto &policy, auto &) { policy.write = {hers}; }));
    CHECK(distrusts([&](auto &policy, auto &) { policy.env_values = {hers}; }));
    CHECK(distrusts([&](auto &policy, auto &) { policy.cwd = hers; }));
    CHECK(distrusts([&](auto &policy, auto &) { policy.home = hers; }));
    CHECK(distrusts([&](auto &, auto &request) { request.program = hers; }));
    CHECK(distrusts([&](auto &policy, auto &) { policy.args = {f.path + "/missing"}; }));
  }
}

TEST_CASE("with a record that cannot be read, links are followed only in their own folder") {
  const Folder f;
  const std::string file = f.path + "/record";
  const auto distrusts = [&] {
    GrantRecord record(file);
    ViewRequest request;
    record.add_to(&request);
    CHECK(record.problem().empty() != request.distrust_links);
    return request.distrust_links;
  };
  CHECK_FALSE(distrusts());  // it does not exist
  fs::create_directory(file);
  CHECK(distrusts());
  fs::remove(file);
  f.link("record", "other");
  CHECK(distrusts());
  fs::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  CHECK(distrusts());
  GrantRecord pipe(file);
  CHECK_FALSE(pipe.add(view_of_folder("/granted")));  // and does not wait for a reader
  fs::remove(file);
  std::ofstream(file) << std::string("\0w/granted\0", 11);
  CHECK_FALSE(distrusts());
  GrantRecord record(file);
  for (const bool few : {true, false}) {
    std::optional<NoDescriptors> none;
    if (few) none.emplace();
    ViewRequest request;
    record.add_to(&request);
    none.reset();
    CHECK(request.distrust_links == few);
    CHECK(request.changeable.size() == (few ? 0 : 1));
  }
}

TEST_CASE("a mount table that cannot be read is noticed") {
  const std::size_t before = MountTable::failures();
  const bool few = GENERATE(true, false);
  std::optional<NoDescriptors> none;
  if (few) none.emplace();
  const auto found = MountTable::of_this_process().others("/", false);
  none.reset();
  CHECK((MountTable::failures() == before + 1) == few);
}

TEST_CASE("a mount table finds the other paths of a folder") {
  const MountTable table = MountTable::parse(
      "1 0 8:1 / / rw - ext4 /dev/a rw\n"
      "2 1 8:2 /@home /home rw - btrfs /dev/b rw\n"
      "3 1 8:2 / /mnt/whole rw - btrfs /dev/b rw\n"
      "4 1 8:2 /@home/me/.config /mnt/with\\040space rw - btrfs /dev/b rw\n"
      "5 1 8:3 /@home /other rw - ext4 /dev/c rw\n"
      "6 1 8:2 /@home /srv/homes rw - btrfs /dev/b rw\n"
      "broken\n");
  const auto found = table.others("/home/me", false);
  std::vector<std::string> text;
  for (const MountTable::Other &other : found) text.push_back(other.at + " = " + other.inside);
  CHECK(text == std::vector<std::string>{"/mnt/whole/@home/me = /home/me",
                                         "/mnt/with space = /home/me/.config",
                                         "/srv/homes/me = /home/me"});
  CHECK(table.others("/root", false).empty());
  CHECK(MountTable::parse("").others("/home/me", false).empty());
}
