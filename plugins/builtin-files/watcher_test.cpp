// Tests file subscriptions: change detection, notifications and limits.
#include "builtin-files/watcher.hpp"

#include <catch2/catch.hpp>

#include <condition_variable>
#include <mutex>

#include "builtin-files/files_fixture.hpp"
#include "builtin-files/resources.hpp"
#include "builtin-files/subscription_lane.hpp"

namespace fs = std::filesystem;
using builtin_files::Watcher;
using builtin_files::Workspace;
using builtin_files::testing::Files;
using builtin_files::testing::Tree;

namespace {

struct Watched {
  Tree tree;
  Files files{tree.writable()};

  std::string uri(const std::string &path) const {
    return "file://" + tree.root().string() + "/" + path;
  }
  void subscribe(const std::string &path) {
    REQUIRE(files.resource("resources/subscribe", uri(path)) == "{}");
  }
  // Waits for a notification. Returns true if it arrives in time and is about this file.
  bool told(const std::string &path) {
    const bool was = files.host.run_until([&] { return !files.updates.empty(); }, 10'000) &&
                     files.updates.front() == uri(path);
    // Discards additional notifications about the same change.
    files.host.run_for(300);
    files.updates.clear();
    return was;
  }
};

}  // namespace

TEST_CASE("a subscriber is notified when the file is written, replaced, deleted or created again") {
  Watched w;
  w.tree.file("a/b/f.txt", "one");
  w.tree.file("a/b/other.txt", "one");
  CHECK(w.files.features() == BH_TOOLS_SUBSCRIBE);
  w.subscribe("a/b/f.txt");
  w.tree.file("a/b/f.txt", "two");
  CHECK(w.told("a/b/f.txt"));
  const fs::path file = w.tree.root() / "a/b/f.txt";
  SECTION("in place, then by rename") {
    w.tree.file("a/b/next", "three");
    fs::rename(w.tree.root() / "a/b/next", file);
    CHECK(w.told("a/b/f.txt"));
    w.tree.file("a/b/f.txt", "four");
    CHECK(w.told("a/b/f.txt"));
  }
  SECTION("by a tool of this server") {
    CHECK_FALSE(w.files.call("file_write", R"({"path":"a/b/f.txt","content":"x"})").is_error());
    CHECK(w.told("a/b/f.txt"));
  }
  SECTION("deleted and created again") {
    fs::remove(file);
    CHECK(w.told("a/b/f.txt"));
    w.tree.file("a/b/f.txt", "again");
    CHECK(w.told("a/b/f.txt"));
  }
  SECTION("the folder is replaced") {
    fs::rename(w.tree.root() / "a", w.tree.root() / "gone");
    CHECK(w.told("a/b/f.txt"));
    w.tree.file("gone/b/f.txt", "unused");
    w.tree.file("a/b/f.txt", "again");
    CHECK(w.told("a/b/f.txt"));
    w.tree.file("a/b/f.txt", "and again");
    CHECK(w.told("a/b/f.txt"));
  }
  SECTION("many writes cause one notification") {
    for (int i = 0; i < 1000; ++i) w.tree.file("a/b/f.txt", std::to_string(i));
    CHECK(w.files.host.run_until([&] { return !w.files.updates.empty(); }, 10'000));
    w.files.host.run_for(300);
    CHECK(w.files.updates.size() < 10);
  }
}

TEST_CASE("only subscribed files are notified, and only until they are unsubscribed") {
  Watched w;
  w.tree.file("f", "one");
  w.tree.file("g", "one");
  w.subscribe("f");
  w.subscribe("f");
  w.subscribe("g");
  w.tree.file("other", "x");
  w.tree.file("f", "two");
  CHECK(w.told("f"));
  CHECK(w.files.resource("resources/unsubscribe", w.uri("f")) == "{}");
  CHECK(w.files.resource("resources/unsubscribe", w.uri("f")) == "{}");
  w.tree.file("f", "three");
  w.tree.file("g", "two");
  CHECK(w.told("g"));
}

TEST_CASE("a missing file can be subscribed to") {
  Watched w;
  w.subscribe("d/e/new%20one");
  w.tree.file("d/e/new one", "x");
  CHECK(w.told("d/e/new%20one"));
  w.tree.file("d/e/new one", "y");
  CHECK(w.told("d/e/new%20one"));
}

TEST_CASE("the target of a link is watched if it is inside the workspace") {
  Watched w;
  w.tree.file("real/f", "one");
  w.tree.file("elsewhere", "one");
  fs::create_symlink("real/f", w.tree.root() / "link");
  w.subscribe("link");
  w.tree.file("real/f", "two");
  CHECK(w.told("link"));
  fs::remove(w.tree.root() / "link");
  fs::create_symlink("elsewhere", w.tree.root() / "link");
  CHECK(w.told("link"));
  w.tree.file("elsewhere", "two");
  CHECK(w.told("link"));
}

TEST_CASE("each link of a chain is watched in its own folder") {
  Watched w;
  const fs::path root = w.tree.root();
  for (const char *version : {"v1", "v2", "v3"}) {
    w.tree.file("all/" + std::string(version) + "/c", "one");
  }
  fs::create_directory(root / "releases");
  fs::create_symlink("../all/v1", root / "releases/latest");
  fs::create_symlink("releases/latest", root / "current");
  w.subscribe("current/c");
  w.tree.file("all/v1/c", "two");
  CHECK(w.told("current/c"));
  const auto replace = [&](const std::string &target) {
    fs::create_symlink(target, root / "releases/next");
    fs::rename(root / "releases/next", root / "releases/latest");
  };
  replace("../all/v2");
  CHECK(w.told("current/c"));
  w.tree.file("all/v2/c", "two");
  CHECK(w.told("current/c"));
  replace("../gone");
  CHECK(w.told("current/c"));
  fs::rename(root / "all/v3", root / "gone");  // creates the target of the last link in the chain
  CHECK(w.told("current/c"));
  w.tree.file("gone/c", "two");
  CHECK(w.told("current/c"));
  // The old path is no longer watched, so changing it causes no notification, and the next
  // notification is about another file.
  w.tree.file("f", "one");
  w.subscribe("f");
  w.tree.file("all/v1/c", "three");
  w.tree.file("f", "two");
  CHECK(w.told("f"));
}

TEST_CASE("circular links and links that leave the workspace are rejected") {
  Watched w;
  fs::create_symlink("b", w.tree.root() / "a");
  fs::create_symlink("a", w.tree.root() / "b");
  fs::create_symlink("out", w.tree.root() / "to");
  fs::create_symlink("../../root/f", w.tree.root() / "out");
  w.tree.file("f", "one");
  for (const char *path : {"a", "a/f", "to", "out"}) {
    INFO(path);
    const std::string answer = w.files.resource("resources/subscribe", w.uri(path));
    CHECK(answer.starts_with(R"({"code":-32002,"message":")"));
  }
}

TEST_CASE("paths with too many components, including those of link targets, are rejected") {
  Watched w;
  std::string target;
  fs::create_directory(w.tree.root() / "d");
  w.tree.file("f", "one");
  for (int i = 0; i < 700; ++i) target += "d/../";
  for (int i = 0; i < 10; ++i) {
    const std::string name = "l" + std::to_string(i);
    fs::create_symlink(target, w.tree.root() / name);
  }
  std::string path;
  for (int i = 0; i < 10; ++i) path += "l" + std::to_string(i) + "/";
  const std::string answer = w.files.resource("resources/subscribe", w.uri(path + "f"));
  CHECK(answer.find("has too many parent folders") != std::string::npos);
}

TEST_CASE("paths that cannot be watched are rejected with the reason") {
  Watched w;
  fs::create_symlink("../secret.txt", w.tree.root() / "out");
  fs::create_directory(w.tree.root() / "d");
  for (const char *path : {"out", "d", "..", "../secret.txt", "a/%2e%2e/b", ""}) {
    INFO(path);
    const std::string answer = w.files.resource("resources/subscribe", w.uri(path));
    CHECK(answer.starts_with(R"({"code":-32002,"message":")"));
  }
  CHECK(w.files.resource("resources/subscribe", "file:///etc/passwd").find("no workspace has") !=
        std::string::npos);
  CHECK(w.files.host.faults().empty());
}

TEST_CASE("a thousand subscriptions can be pending at the same time") {
  Watched w;
  const auto all = [&](const char *method, const std::string &stem) {
    std::vector<bh_call> calls;
    for (std::size_t i = 0; i < builtin_files::max_subscriptions; ++i) {
      calls.push_back(w.files.begin(w.uri(stem + std::to_string(i)), {}, 0, method));
      REQUIRE(w.files.status == BH_PENDING);
    }
    std::size_t refused = 0;
    for (const bh_call call : calls) refused += w.files.wait(call).json().HasMember("code");
    CHECK(refused == 0);
  };
  all("resources/subscribe", "f");
  CHECK(w.files.resource("resources/subscribe", w.uri("one-more")).find("1024 files") !=
        std::string::npos);
  all("resources/unsubscribe", "f");
  all("resources/subscribe", "g");
  all("resources/unsubscribe", "g");
  all("resources/subscribe", "f");
}

TEST_CASE("subscribe and unsubscribe calls are executed in order of arrival") {
  Watched w;
  w.tree.file("f", "one");
  w.subscribe("f");
  bh_call last = 0;
  for (int i = 0; i < 1000; ++i) {
    w.files.begin(w.uri("f"), {}, 0, "resources/unsubscribe");
    last = w.files.begin(w.uri("f"), {}, 0, "resources/subscribe");
  }
  w.files.wait(last);
  w.tree.file("f", "two");
  CHECK(w.told("f"));
  for (int i = 0; i < 1000; ++i) {
    w.files.begin(w.uri("f"), {}, 0, "resources/subscribe");
    last = w.files.begin(w.uri("f"), {}, 0, "resources/unsubscribe");
  }
  w.files.wait(last);
  w.tree.file("g", "one");
  w.subscribe("g");
  w.tree.file("f", "three");
  w.tree.file("g", "two");
  CHECK(w.told("g"));
}

namespace {

// Fills all job slots of the host. The jobs run until the gate is opened.
struct Busy {
  explicit Busy(bh::testing::FakeHost &h) : fake(h), host(h.host()) {
    const auto wait = [](void *arg) { static_cast<Busy *>(arg)->gate.pass(); };
    while (host.run_blocking(wait, [](void *) {}, this) == BH_OK) ++jobs;
  }
  ~Busy() {
    gate.open();
    fake.run_until([this] { return fake.blocking() == 0; }, 20'000);
  }
  struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool is_open = false;
    void pass() {
      std::unique_lock lock(mutex);
      opened.wait(lock, [this] { return is_open; });
    }
    void open() {
      const std::lock_guard lock(mutex);
      is_open = true;
      opened.notify_all();
    }
  };
  bh::testing::FakeHost &fake;
  bh::Host host;
  Gate gate;
  std::size_t jobs = 0;
};

}  // namespace

TEST_CASE("subscriptions wait while the host rejects jobs, and fail when the plugin stops") {
  Watched w;
  Busy busy(w.files.host);
  REQUIRE(busy.jobs > 0);
  const bh_call call = w.files.begin(w.uri("f"), {}, 0, "resources/subscribe");
  CHECK(w.files.status == BH_PENDING);
  w.files.host.run_for(100);
  CHECK_FALSE(w.files.finished(call));
  SECTION("until a job is accepted") {
    busy.gate.open();
    CHECK_FALSE(w.files.wait(call).json().HasMember("code"));
    w.tree.file("f", "one");
    CHECK(w.told("f"));
  }
  SECTION("cancelled calls are also completed") {
    const bh_call other = w.files.begin(w.uri("g"), {}, 0, "resources/unsubscribe");
    w.files.cancel(call);
    busy.gate.open();
    CHECK_FALSE(w.files.wait(call).json().HasMember("code"));
    CHECK_FALSE(w.files.wait(other).json().HasMember("code"));
  }
  SECTION("the plugin stops") {
    const bh_call other = w.files.begin(w.uri("g"), {}, 0, "resources/unsubscribe");
    busy.gate.open();  // stop() waits for the running jobs
    w.files.stop();
    CHECK(w.files.wait(call).json().HasMember("code"));
    CHECK(w.files.wait(other).json().HasMember("code"));
    CHECK(w.files.host.timers() == 0);
  }
}

TEST_CASE("the number of pending subscription calls is limited") {
  Watched w;
  Busy busy(w.files.host);
  std::size_t waiting = 0;
  do {
    w.files.begin(w.uri("f"), {}, 0, "resources/unsubscribe");
  } while (w.files.status == BH_PENDING && ++waiting < 100'000);
  CHECK(waiting == builtin_files::SubscriptionLane::max_calls);
  CHECK(w.files.error_text.find("too many subscriptions are pending") == 0);
  busy.gate.open();
  w.files.stop();
  CHECK(w.files.finished(1));
  CHECK(w.files.finished(waiting));
}

TEST_CASE("the number of watched files is limited, and unsubscribing frees a slot") {
  const Tree tree;
  std::vector<Workspace> workspaces(1);
  std::string problem;
  REQUIRE(Workspace::open("work", tree.root().string(), &workspaces[0], &problem));
  Watcher watcher;
  REQUIRE(watcher.open(workspaces).empty());
  const auto add = [&](std::size_t i) {
    const std::string name = "f" + std::to_string(i);
    return watcher.add("file:///" + name, workspaces[0], name);
  };
  for (std::size_t i = 0; i < builtin_files::max_subscriptions; ++i) REQUIRE(add(i).empty());
  CHECK(add(5000).find("1024 files of the workspace \"work\"") == 0);
  watcher.remove("file:///f7");
  CHECK(add(5000).empty());
}

TEST_CASE("the number of watched folders is limited") {
  Tree tree;
  std::string deep;
  for (int i = 0; i < 8; ++i) deep += "d/";
  std::vector<Workspace> workspaces(1);
  std::string problem;
  REQUIRE(Workspace::open("work", tree.root().string(), &workspaces[0], &problem));
  Watcher watcher(100);
  REQUIRE(watcher.open(workspaces).empty());
  std::size_t refused = 0;
  for (int i = 0; i < 12; ++i) {
    const std::string path = std::to_string(i) + "/" + deep + "f";
    tree.file(path, "");
    const std::string said = watcher.add(path, workspaces[0], path);
    if (said.empty()) continue;
    CHECK(said.find("100 folders of the workspace") == 0);
    ++refused;
  }
  CHECK(refused == 1);  // one of the paths exceeds the folder limit
}

TEST_CASE("an inotify queue overflow notifies all subscribed files") {
  Tree tree;
  tree.file("quiet/f", "one");
  fs::create_directory(tree.root() / "loud");
  std::vector<Workspace> workspaces(1);
  std::string problem;
  REQUIRE(Workspace::open("work", tree.root().string(), &workspaces[0], &problem));
  Watcher watcher;
  REQUIRE(watcher.open(workspaces).empty());
  REQUIRE(watcher.add("quiet", workspaces[0], "quiet/f").empty());
  REQUIRE(watcher.add("loud", workspaces[0], "loud/f").empty());
  std::size_t most = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> most;
  REQUIRE(most != 0);
  if (most > 100'000) {
    WARN("SKIP: overflow (fs.inotify.max_queued_events is too large)");
    return;
  }
  // Alternates between two files because the kernel merges identical consecutive events.
  std::ofstream one(tree.root() / "loud/one"), two(tree.root() / "loud/two");
  for (std::size_t i = 0; i <= most / 2; ++i) {
    one << 'x' << std::flush;
    two << 'x' << std::flush;
  }
  std::vector<std::string> changed;
  for (int i = 0; i < 100 && changed.empty(); ++i) {
    watcher.read_events();
    changed = watcher.dequeue_changed();
  }
  CHECK(changed == std::vector<std::string>{"loud", "quiet"});
}
