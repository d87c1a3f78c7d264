#include "plugin/instance.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "bulkhead/cpp/host.hpp"
#include "plugin/host_functions.hpp"
#include "plugin/test_folder.hpp"

namespace bulkhead {
namespace {

using Catch::Contains;

struct World {
  testing::TestFolder state;
  std::unique_ptr<Reactor> reactor = Reactor::create().value();
  std::vector<std::string> lines;  // "level component: text"
  HostContext context;

  World() {
    context.reactor = reactor.get();
    context.name = "test";
    context.version = "0";
    context.state_dir = state / "state";
    context.log = [this](std::int32_t level, std::string_view component, std::string_view text) {
      lines.push_back(std::to_string(level) + " " + std::string(component) + ": " +
                      std::string(text));
    };
  }

  Result<std::unique_ptr<Instance>> make(const std::string &plugin, const std::string &id) {
    LoadOptions options;
    options.dirs = {TEST_PLUGINS};
    auto library = Library::load(plugin, nullptr, options);
    if (!library) FAIL(library.error().text);
    return Instance::create(id, std::move(*library), context);
  }
  std::unique_ptr<Instance> good() { return make("good", "mine").value(); }

  bool logged(const std::string &part) const {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string &line) {
      return line.find(part) != std::string::npos;
    });
  }
};

bh_host host_of(Instance &instance) {
  return HostFunctions::host_of(instance);
}

TEST_CASE("an instance passes through each of its states once") {
  World world;
  {
    auto instance = world.good();
    CHECK(instance->state() == InstanceState::created);
    CHECK(instance->ext<char>("test.ext/1") != nullptr);
    CHECK(instance->ext<char>("test.ext/1x") == nullptr);
    REQUIRE(instance->configure("{}").has_value());
    REQUIRE(instance->start().has_value());
    std::string text;
    CHECK(instance->probe(&text) == BH_PENDING);
    instance->drain(0);
    CHECK(instance->state() == InstanceState::draining);
    instance->stop();
    instance->stop();  // a second call has no effect
    CHECK(instance->state() == InstanceState::stopped);
  }
  CHECK(world.lines == std::vector<std::string>{"1 mine: configure", "1 mine: start",
                                                "1 mine: probe", "1 mine: drain", "1 mine: stop",
                                                "1 mine: destroy"});
}

TEST_CASE("a step out of order is rejected and never reaches the plugin") {
  World world;
  auto instance = world.good();
  CHECK(instance->start().error().code == BH_E_INVALID);
  instance->stop();
  instance->drain(0);
  REQUIRE(instance->configure("{}").has_value());
  CHECK(instance->configure("{}").error().code == BH_E_INVALID);
  CHECK_FALSE(world.logged("1 mine: start"));
  CHECK_FALSE(world.logged("1 mine: stop"));
  CHECK(world.logged("4 mine: plugin good, instance mine: stop called in state created"));
}

TEST_CASE("destroying a running instance stops it first") {
  World world;
  {
    auto instance = world.good();
    REQUIRE(instance->configure("{}").has_value());
    REQUIRE(instance->start().has_value());
  }
  REQUIRE(world.lines.size() == 4);
  CHECK(world.lines[2] == "1 mine: stop");
  CHECK(world.lines[3] == "1 mine: destroy");
}

TEST_CASE("after a failed configuration or start, an instance can only be destroyed") {
  World world;
  {
    auto instance = world.good();
    const auto refused = instance->configure(R"({"refuse":true})");
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == BH_E_INVALID);
    // The plugin's error contains an ESC character, which is replaced with a space.
    CHECK_THAT(refused.error().text,
               Contains("plugin good, instance mine") && Contains("an object [31m is wanted"));
    CHECK_FALSE(instance->start().has_value());
  }
  CHECK_FALSE(world.logged("1 mine: start"));
  auto unasked = world.make("good", "unasked").value();
  CHECK_THAT(
      unasked->configure(R"({"other":1})").error().text,
      Contains("plugin good, instance unasked") && Contains("unknown key; known keys: refuse"));
  CHECK_FALSE(world.logged("1 unasked: configure"));
  auto failing = world.make("fails-in-start", "other").value();
  REQUIRE(failing->configure("{}").has_value());
  const auto refused = failing->start();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == BH_E_IO);
  CHECK_THAT(refused.error().text, Contains("no such device"));
  failing.reset();
  CHECK_FALSE(world.logged("1 other: stop"));
  CHECK(world.logged("1 other: destroy"));
}

TEST_CASE("resources held after stop() are logged and removed") {
  World world;
  auto instance = world.make("leaks", "leaks").value();
  REQUIRE(instance->configure("{}").has_value());
  REQUIRE(instance->start().has_value());
  instance->stop();
  CHECK(world.logged("5 leaks: unreleased resources: 1 watch(es), 1 timer(s)"));
  const auto held = world.reactor->held(instance.get());
  CHECK(held.watches + held.timers + held.posted + held.blocking == 0);
}

TEST_CASE("a clean stop logs no errors, and later calls to the host are rejected") {
  World world;
  auto instance = world.good();
  REQUIRE(instance->configure("{}").has_value());
  REQUIRE(instance->start().has_value());
  const bh_host raw = host_of(*instance);
  const bh::Host host(&raw);
  static int runs = 0;
  const auto count = [](void *) { ++runs; };
  CHECK(host.post(count, nullptr) == BH_OK);
  world.reactor->poll(0);
  CHECK(runs == 1);
  instance->stop();
  CHECK_FALSE(world.logged("unreleased resources"));
  CHECK(host.post(count, nullptr) == BH_STALE);
  CHECK(host.timer_start(1, count, nullptr) == 0);
  world.reactor->poll(0);
  CHECK(runs == 1);
}

TEST_CASE("timers, watches and pool work run through the instance's host") {
  World world;
  auto instance = world.good();
  const bh_host raw = host_of(*instance);
  const bh::Host host(&raw);
  REQUIRE(host.has_reactor());
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  static int timers = 0, reads = 0, works = 0;
  bh_watch watch = 0;
  REQUIRE(host.watch(
              fds[0], BH_FD_READ, [](void *, std::int32_t, std::uint32_t) { ++reads; }, nullptr,
              &watch) == BH_OK);
  CHECK(host.timer_start(1, [](void *) { ++timers; }, nullptr) != 0);
  CHECK(host.run_blocking([](void *) {}, [](void *) { ++works; }, nullptr) == BH_OK);
  REQUIRE(::write(fds[1], "x", 1) == 1);
  while (timers == 0 || works == 0) world.reactor->poll(100);
  CHECK(reads > 0);
  host.unwatch(watch);
  ::close(fds[0]);
  ::close(fds[1]);
  bh_watch none = 0;
  CHECK(host.watch(
            -1, BH_FD_READ, [](void *, std::int32_t, std::uint32_t) {}, nullptr, &none) ==
        BH_E_INVALID);
  CHECK(world.logged("5 mine: fd.watch was called with invalid arguments"));
}

TEST_CASE("an instance whose blocking work is running stays in memory, together with its host") {
  World world;
  static std::atomic<bool> go{false};
  static bool done = false;
  auto instance = world.good();
  REQUIRE(instance->configure("{}").has_value());
  REQUIRE(instance->start().has_value());
  bh_host raw = host_of(*instance);
  const auto *executor =
      static_cast<const bh_host_executor *>(raw.get_ext(raw.ctx, BH_EXT_HOST_EXECUTOR));
  const auto work = [](void *) { go.wait(false); };
  const auto finish = [](void *arg) {
    const auto *host = static_cast<const bh_host *>(arg);
    host->log(host->ctx, BH_LOG_INFO, bh::str("the host is still there"));
    done = true;
  };
  REQUIRE(executor->run_blocking(raw.ctx, work, finish, &raw) == BH_OK);
  instance.reset();
  CHECK(world.logged("5 mine: unreleased resources: 1 blocking job(s)"));
  CHECK(world.logged("5 mine: stays in memory"));
  CHECK_FALSE(world.logged("1 mine: destroy"));
  go = true;
  go.notify_all();
  while (!done) world.reactor->poll(100);
  CHECK(world.logged("1 mine: the host is still there"));
}

TEST_CASE("log lines are truncated, sanitized and filtered") {
  World world;
  auto instance = world.good();
  const bh_host raw = host_of(*instance);
  const bh::Host host(&raw);
  host.log(BH_LOG_DEBUG, "unseen");
  CHECK_FALSE(host.log_enabled(BH_LOG_DEBUG));
  host.log(BH_LOG_WARN,
           "a\nb\x1b[0m\xc2\x9b"
           "c\xff\xc3\xa4");
  host.log(99, std::string(5000, 'x') + "\xc3\xa4");
  REQUIRE(world.lines.size() == 2);
  CHECK(world.lines[0] == "2 mine: a b [0m c?\xc3\xa4");
  CHECK(world.lines[1] == "5 mine: " + std::string(4096, 'x'));
  host.log(BH_LOG_INFO, std::string(4095, 'x') + "\xc3\xa4");
  CHECK(world.lines[2] == "1 mine: " + std::string(4095, 'x'));
}

TEST_CASE("only common extensions and the host's additional extensions are available") {
  World world;
  static const int extra = 0;
  world.context.extra_ext = [](Instance &instance, std::string_view id) -> const void * {
    return id == "bh.host.tools/1" && instance.id() == "mine" ? &extra : nullptr;
  };
  auto instance = world.good();
  const bh_host raw = host_of(*instance);
  for (const char *id : {BH_EXT_HOST_EXECUTOR, BH_EXT_HOST_FD, BH_EXT_HOST_SECRETS,
                         BH_EXT_HOST_METRICS, BH_EXT_HOST_STORE}) {
    CHECK(raw.get_ext(raw.ctx, id) != nullptr);
    CHECK(raw.get_ext(raw.ctx, (std::string(id) + "0").c_str()) == nullptr);
  }
  CHECK(raw.get_ext(raw.ctx, "bh.host.tools/1") == &extra);
  CHECK(raw.get_ext(raw.ctx, nullptr) == nullptr);
}

TEST_CASE("secrets are private to an instance, limited in number, and replaced atomically") {
  World world;
  auto instance = world.good();
  auto other = world.make("good", "other").value();
  const bh_host raw = host_of(*instance), raw_other = host_of(*other);
  const auto *secrets =
      static_cast<const bh_host_secrets *>(raw.get_ext(raw.ctx, BH_EXT_HOST_SECRETS));
  char buf[64];
  std::uint64_t n = 0;
  CHECK(secrets->get(raw.ctx, bh::str("token"), buf, sizeof buf, &n) == BH_E_NOT_FOUND);
  REQUIRE(secrets->put(raw.ctx, bh::str("token"), bh::str("hush")) == BH_OK);
  REQUIRE(secrets->put(raw.ctx, bh::str("token"), bh::str("hush hush")) == BH_OK);
  REQUIRE(secrets->get(raw.ctx, bh::str("token"), buf, sizeof buf, &n) == BH_OK);
  CHECK(std::string(buf, n) == "hush hush");
  CHECK(secrets->get(raw.ctx, bh::str("token"), buf, 3, &n) == BH_E_LIMIT);
  CHECK(n == 9);
  CHECK(secrets->get(raw_other.ctx, bh::str("token"), buf, sizeof buf, &n) == BH_E_NOT_FOUND);

  const std::string file = world.context.state_dir + "/secrets/mine/token";
  struct stat status{};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  REQUIRE(::stat((world.context.state_dir + "/secrets/mine").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);

  for (const char *name : {"", "../x", "A", "a/b", ".hidden"}) {
    CHECK(secrets->put(raw.ctx, bh::str(name), bh::str("x")) == BH_E_INVALID);
    CHECK(secrets->get(raw.ctx, bh::str(name), buf, sizeof buf, &n) == BH_E_INVALID);
  }
  CHECK(secrets->put(raw.ctx, bh::str("big"), bh::str(std::string(65'537, 'x'))) == BH_E_LIMIT);
  ::chmod(file.c_str(), 0644);
  CHECK(secrets->get(raw.ctx, bh::str("token"), buf, sizeof buf, &n) == BH_E_DENIED);
  CHECK_FALSE(world.logged("hush"));
  CHECK(secrets->put(raw.ctx, bh::str("token"), {}) == BH_OK);
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(std::filesystem::is_empty(world.context.state_dir + "/secrets/mine"));
}

TEST_CASE("the storage folder is private to its instance") {
  World world;
  auto instance = world.good();
  const bh_host raw = host_of(*instance);
  const auto *store = static_cast<const bh_host_store *>(raw.get_ext(raw.ctx, BH_EXT_HOST_STORE));
  const std::string folder(bh::view(store->folder(raw.ctx)));
  CHECK(folder == world.context.state_dir + "/plugins/mine");
  struct stat status{};
  REQUIRE(::stat(folder.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);

  auto other = world.make("good", "linked").value();
  std::filesystem::create_directory_symlink("/", world.context.state_dir + "/plugins/linked");
  const bh_host raw_other = host_of(*other);
  CHECK(store->folder(raw_other.ctx).n == 0);
  CHECK(world.logged("3 linked: storage is unavailable"));

  world.context.state_dir.clear();
  auto without = world.make("good", "without").value();
  const bh_host raw_without = host_of(*without);
  CHECK(store->folder(raw_without.ctx).n == 0);
}

TEST_CASE("counters are found by name, limited and incremented") {
  World world;
  auto instance = world.good();
  const bh_host raw = host_of(*instance);
  const auto *metrics =
      static_cast<const bh_host_metrics *>(raw.get_ext(raw.ctx, BH_EXT_HOST_METRICS));
  const bh_metric calls = metrics->counter(raw.ctx, bh::str("calls"));
  REQUIRE(calls != 0);
  CHECK(metrics->counter(raw.ctx, bh::str("calls")) == calls);
  CHECK(metrics->counter(raw.ctx, bh::str("No spaces")) == 0);
  metrics->add(raw.ctx, calls, 2);
  metrics->add(raw.ctx, calls, 3);
  metrics->add(raw.ctx, 0, 1);
  metrics->add(raw.ctx, 77, 1);
  REQUIRE(instance->counters().size() == 1);
  CHECK(instance->counters()[0] == std::pair<std::string, std::uint64_t>{"calls", 5});
  for (int i = 0; i < 300; ++i) metrics->counter(raw.ctx, bh::str("c" + std::to_string(i)));
  CHECK(instance->counters().size() == 256);
  CHECK(metrics->counter(raw.ctx, bh::str("one.more")) == 0);
}

TEST_CASE("instance ids that could escape their folder are rejected") {
  World world;
  for (const char *id : {"", ".", "..", "a/b", "a b"}) {
    CHECK_FALSE(world.make("good", id).has_value());
  }
  CHECK(world.make("good", "..a").has_value());
}

TEST_CASE(
    "tables of an older or newer plugin are used up to the last member that both sides know") {
  World world;
  CHECK(world.make("shorter", "s").value()->ext<char>("test.ext/1") == nullptr);
  CHECK(world.make("bigger", "b").value()->ext<char>("test.ext/1") != nullptr);
}

}  // namespace
}  // namespace bulkhead
