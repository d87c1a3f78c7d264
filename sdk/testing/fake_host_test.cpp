#include <fcntl.h>
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/testing/fake_host.hpp>
#include <catch2/catch.hpp>

using bh::testing::FakeHost;

namespace {

void count(void *arg) {
  ++*static_cast<int *>(arg);
}

struct Pipe {
  Pipe() { REQUIRE(::pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0); }
  ~Pipe() {
    ::close(fds[0]);
    if (fds[1] >= 0) ::close(fds[1]);
  }
  int fds[2]{-1, -1};
};

}  // namespace

TEST_CASE("a host without extensions returns no tables") {
  FakeHost fake;
  REQUIRE(bh::Host(fake.host()).has_reactor());
  fake.offer_extensions = false;
  REQUIRE_FALSE(bh::Host(fake.host()).has_reactor());
}

TEST_CASE("added tables are found and receive the host as ctx") {
  FakeHost fake;
  const int table = 7;
  fake.add_ext("x.table/1", &table);
  const bh::Host host(fake.host());
  REQUIRE(host.ext<int>("x.table/1") == &table);
  REQUIRE(host.ext<int>("x.table/2") == nullptr);
  REQUIRE(host.ctx() == &fake);
}

TEST_CASE("posted functions run on the loop, from any thread") {
  FakeHost fake;
  const bh::Host host(fake.host());
  int n = 0;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) host.post(count, &n);
  });
  REQUIRE(fake.run_until([&] { return n == 100; }, 5000));
  other.join();
}

TEST_CASE("deferred functions run before the loop sleeps") {
  FakeHost fake;
  const bh::Host host(fake.host());
  int n = 0;
  host.defer(count, &n);
  REQUIRE(fake.deferred() == 1);
  fake.turn(0);
  REQUIRE(n == 1);
  REQUIRE(fake.deferred() == 0);
}

TEST_CASE("a timer fires once, but not if it was cancelled; a stale handle is rejected") {
  FakeHost fake;
  const bh::Host host(fake.host());
  int fired = 0, never = 0;
  const bh_timer first = host.timer_start(1, count, &fired);
  bh_timer second = host.timer_start(1, count, &never);
  REQUIRE(fake.timers() == 2);
  host.timer_cancel(second);
  REQUIRE(second == 0);
  REQUIRE(fake.run_until([&] { return fired == 1; }, 5000));
  REQUIRE(never == 0);
  REQUIRE(fake.timers() == 0);
  const auto *executor = host.ext<bh_host_executor>(BH_EXT_HOST_EXECUTOR);
  REQUIRE(executor->timer_cancel(host.ctx(), first) == BH_STALE);
}

TEST_CASE("a watch is level-triggered and reports a closed stream as an error event") {
  FakeHost fake;
  const bh::Host host(fake.host());
  Pipe pipe;
  struct Seen {
    int calls = 0;
    std::uint32_t last = 0;
  } seen;
  bh_watch watch = 0;
  const auto note = [](void *arg, std::int32_t, std::uint32_t events) {
    auto &s = *static_cast<Seen *>(arg);
    ++s.calls;
    s.last = events;
  };
  REQUIRE(host.watch(pipe.fds[0], BH_FD_READ, note, &seen, &watch) == BH_OK);
  fake.turn(0);
  REQUIRE(seen.calls == 0);
  REQUIRE(::write(pipe.fds[1], "x", 1) == 1);
  fake.turn(1000);
  fake.turn(1000);
  REQUIRE(seen.calls == 2);
  REQUIRE(seen.last == BH_FD_READ);
  host.modify(watch, 0);
  fake.turn(0);
  REQUIRE(seen.calls == 2);
  ::close(std::exchange(pipe.fds[1], -1));
  fake.turn(1000);
  REQUIRE(seen.last == BH_FD_ERROR);
  host.unwatch(watch);
  REQUIRE(fake.watches() == 0);
  REQUIRE(fake.faults().empty());
}

TEST_CASE("a fault is reported if a descriptor is watched twice or closed while watched") {
  FakeHost fake;
  const bh::Host host(fake.host());
  Pipe pipe;
  const auto nothing = [](void *, std::int32_t, std::uint32_t) {};
  bh_watch watch = 0, again = 0;
  REQUIRE(host.watch(pipe.fds[0], BH_FD_READ, nothing, nullptr, &watch) == BH_OK);
  REQUIRE(host.watch(pipe.fds[0], BH_FD_READ, nothing, nullptr, &again) == BH_E_INVALID);
  REQUIRE(fake.faults().size() == 1);
  const int copy = ::dup(pipe.fds[1]);
  REQUIRE(host.watch(copy, BH_FD_READ, nothing, nullptr, &again) == BH_OK);
  ::close(copy);
  fake.turn(0);
  REQUIRE(fake.faults().size() == 2);
  host.unwatch(watch);
}

TEST_CASE("regular files are rejected, as by epoll") {
  FakeHost fake;
  const bh::Host host(fake.host());
  const int fd = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  bh_watch watch = 0;
  const auto nothing = [](void *, std::int32_t, std::uint32_t) {};
  REQUIRE(host.watch(fd, BH_FD_READ, nothing, nullptr, &watch) == BH_E_UNSUPPORTED);
  ::close(fd);
}

TEST_CASE("blocking work runs on another thread, and its completion is reported on the loop") {
  FakeHost fake;
  const bh::Host host(fake.host());
  struct Job {
    std::thread::id worked, reported;
  } job;
  const auto work = [](void *arg) { static_cast<Job *>(arg)->worked = std::this_thread::get_id(); };
  const auto done = [](void *arg) {
    static_cast<Job *>(arg)->reported = std::this_thread::get_id();
  };
  fake.blocking_inline = GENERATE(false, true);
  REQUIRE(host.run_blocking(work, done, &job) == BH_OK);
  REQUIRE(fake.run_until([&] { return job.reported != std::thread::id(); }, 5000));
  REQUIRE(job.reported == std::this_thread::get_id());
  REQUIRE((job.worked == job.reported) == fake.blocking_inline);
  REQUIRE(fake.run_until([&] { return fake.blocking() == 0; }, 5000));
}

TEST_CASE("secrets, metrics and the store are available") {
  FakeHost fake;
  const bh::Host host(fake.host());
  const auto *secrets = host.ext<bh_host_secrets>(BH_EXT_HOST_SECRETS);
  char small[2];
  std::uint64_t n = 0;
  REQUIRE(secrets->get(&fake, bh::str("a"), small, sizeof small, &n) == BH_E_NOT_FOUND);
  REQUIRE(secrets->put(&fake, bh::str("a"), bh::str("xyz")) == BH_OK);
  REQUIRE(secrets->get(&fake, bh::str("a"), small, sizeof small, &n) == BH_E_LIMIT);
  REQUIRE(n == 3);

  const auto *metrics = host.ext<bh_host_metrics>(BH_EXT_HOST_METRICS);
  const bh_metric metric = metrics->counter(&fake, bh::str("lines"));
  REQUIRE(metrics->counter(&fake, bh::str("lines")) == metric);
  metrics->add(&fake, metric, 5);
  REQUIRE(fake.metric("lines") == 5);

  const auto *store = host.ext<bh_host_store>(BH_EXT_HOST_STORE);
  const std::string folder(bh::view(store->folder(&fake)));
  REQUIRE(std::filesystem::is_directory(folder));
  REQUIRE(bh::view(store->folder(&fake)) == folder);
}

TEST_CASE("log lines are stored") {
  FakeHost fake;
  bh::Host(fake.host()).log(BH_LOG_WARN, "careful");
  REQUIRE(fake.logged("careful"));
  REQUIRE(fake.logs().at(0).level == BH_LOG_WARN);
  REQUIRE_FALSE(fake.logged("careless"));
}
