#include "reactor/reactor.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/idle_memory.hpp"
#include "reactor/post_owned.hpp"

using bulkhead::post_owned;
using bulkhead::Reactor;

namespace {

std::unique_ptr<Reactor> make() {
  auto reactor = Reactor::create();
  REQUIRE(reactor.has_value());
  return std::move(*reactor);
}

struct Pipe {
  int fds[2];
  Pipe() { REQUIRE(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0); }
  ~Pipe() {
    close(fds[0]);
    close(fds[1]);
  }
};

void call(void *arg) {
  (*static_cast<std::function<void()> *>(arg))();
}

}  // namespace

TEST_CASE("a watch reports a ready descriptor until unwatch()") {
  auto reactor = make();
  Pipe pipe;
  int calls = 0;
  std::uint64_t watch = 0;
  REQUIRE(reactor->watch(
              nullptr, pipe.fds[0], BH_FD_READ,
              [](void *arg, std::int32_t, std::uint32_t events) {
                CHECK(events == BH_FD_READ);
                ++*static_cast<int *>(arg);
              },
              &calls, &watch) == BH_OK);
  reactor->poll(0);
  CHECK(calls == 0);
  REQUIRE(write(pipe.fds[1], "x", 1) == 1);
  reactor->poll(0);
  reactor->poll(0);
  CHECK(calls == 2);
  CHECK(reactor->modify(watch, 0) == BH_OK);
  reactor->poll(0);
  CHECK(calls == 2);
  CHECK(reactor->unwatch(watch) == BH_OK);
  CHECK(reactor->unwatch(watch) == BH_STALE);
  CHECK(reactor->modify(watch, BH_FD_READ) == BH_STALE);
}

TEST_CASE("a handler may remove a watch that is ready in the same turn") {
  auto reactor = make();
  Pipe a, b;
  struct Both {
    Reactor *reactor;
    std::uint64_t watch[2] = {0, 0};
    int calls = 0;
  } both{reactor.get()};
  const auto handler = [](void *arg, std::int32_t, std::uint32_t) {
    auto &s = *static_cast<Both *>(arg);
    ++s.calls;
    s.reactor->unwatch(s.watch[0]);
    s.reactor->unwatch(s.watch[1]);
  };
  REQUIRE(reactor->watch(nullptr, a.fds[0], BH_FD_READ, handler, &both, &both.watch[0]) == BH_OK);
  REQUIRE(reactor->watch(nullptr, b.fds[0], BH_FD_READ, handler, &both, &both.watch[1]) == BH_OK);
  REQUIRE(write(a.fds[1], "x", 1) == 1);
  REQUIRE(write(b.fds[1], "x", 1) == 1);
  reactor->poll(0);
  CHECK(both.calls == 1);
}

TEST_CASE("watching a regular file fails with BH_E_UNSUPPORTED") {
  auto reactor = make();
  FILE *file = tmpfile();
  REQUIRE(file != nullptr);
  std::uint64_t watch = 0;
  CHECK(reactor->watch(
            nullptr, fileno(file), BH_FD_READ, [](void *, std::int32_t, std::uint32_t) {}, nullptr,
            &watch) == BH_E_UNSUPPORTED);
  fclose(file);
}

TEST_CASE(
    "a turn runs timers, descriptors, posted functions and deferred functions, in this order") {
  auto reactor = make();
  Pipe pipe;
  std::vector<std::string> order;
  std::function<void()> deferred = [&] { order.emplace_back("deferred"); };
  const auto defer = [&] { reactor->defer(nullptr, call, &deferred); };
  std::function<void()> timer = [&] {
    order.emplace_back("timer");
    defer();
  };
  std::function<void()> descriptor = [&] { order.emplace_back("descriptor"); };
  std::function<void()> posted = [&] { order.emplace_back("posted"); };
  reactor->post(nullptr, call, &posted);
  std::uint64_t watch = 0;
  REQUIRE(reactor->watch(
              nullptr, pipe.fds[0], BH_FD_READ,
              [](void *arg, std::int32_t, std::uint32_t) { call(arg); }, &descriptor,
              &watch) == BH_OK);
  reactor->timer_start(nullptr, 0, call, &timer);
  REQUIRE(write(pipe.fds[1], "x", 1) == 1);
  reactor->poll(0);
  CHECK(order == std::vector<std::string>{"timer", "descriptor", "posted", "deferred"});
}

TEST_CASE("all descriptors that are ready are reported in one turn") {
  auto reactor = make();
  std::vector<Pipe> pipes(40);
  std::vector<int> calls(pipes.size());
  int turn_ends = 0;
  struct Seen {
    Reactor *reactor;
    int *calls;
    std::function<void()> *turn_end;
  };
  std::function<void()> turn_end = [&] { ++turn_ends; };
  std::vector<Seen> seen(pipes.size());
  for (std::size_t i = 0; i < pipes.size(); ++i) {
    seen[i] = {reactor.get(), &calls[i], &turn_end};
    std::uint64_t watch = 0;
    REQUIRE(reactor->watch(
                nullptr, pipes[i].fds[0], BH_FD_READ,
                [](void *arg, std::int32_t, std::uint32_t) {
                  auto &s = *static_cast<Seen *>(arg);
                  if (++*s.calls == 1) s.reactor->defer(nullptr, call, s.turn_end);
                },
                &seen[i], &watch) == BH_OK);
    REQUIRE(write(pipes[i].fds[1], "x", 1) == 1);
  }
  reactor->poll(0);
  CHECK(calls == std::vector<int>(pipes.size(), 1));
  CHECK(turn_ends == static_cast<int>(pipes.size()));
}

TEST_CASE("a hang-up is reported as an error even if no event is requested") {
  auto reactor = make();
  int fds[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
  std::vector<std::uint32_t> seen;
  std::uint64_t watch = 0;
  REQUIRE(reactor->watch(
              nullptr, fds[0], 0,
              [](void *arg, std::int32_t, std::uint32_t events) {
                static_cast<std::vector<std::uint32_t> *>(arg)->push_back(events);
              },
              &seen, &watch) == BH_OK);
  REQUIRE(write(fds[1], "x", 1) == 1);
  reactor->poll(0);
  CHECK(seen.empty());  // readable, but no event is requested
  close(fds[1]);
  reactor->poll(0);
  CHECK(seen == std::vector<std::uint32_t>{BH_FD_ERROR});
  REQUIRE(reactor->modify(watch, BH_FD_READ | BH_FD_WRITE) == BH_OK);
  seen.clear();
  reactor->poll(0);
  CHECK(seen == std::vector<std::uint32_t>{BH_FD_READ | BH_FD_WRITE | BH_FD_ERROR});
  REQUIRE(reactor->unwatch(watch) == BH_OK);
  close(fds[0]);
  seen.clear();
  reactor->poll(0);
  CHECK(seen.empty());
}

TEST_CASE("a resumed watch reports data that arrived during the pause") {
  auto reactor = make();
  Pipe pipe;
  int calls = 0;
  std::uint64_t watch = 0;
  REQUIRE(reactor->watch(
              nullptr, pipe.fds[0], BH_FD_READ,
              [](void *arg, std::int32_t, std::uint32_t) { ++*static_cast<int *>(arg); }, &calls,
              &watch) == BH_OK);
  for (int round = 0; round < 3; ++round) {
    calls = 0;
    REQUIRE(reactor->modify(watch, 0) == BH_OK);
    REQUIRE(write(pipe.fds[1], "x", 1) == 1);
    reactor->poll(0);
    reactor->poll(0);
    CHECK(calls == 0);
    REQUIRE(reactor->modify(watch, BH_FD_READ) == BH_OK);
    reactor->poll(0);
    CHECK(calls == 1);
    char buffer[8];
    REQUIRE(read(pipe.fds[0], buffer, sizeof buffer) == 1);
    reactor->poll(0);
    CHECK(calls == 1);
  }
}

TEST_CASE("a descriptor number can be reused for another watch") {
  auto reactor = make();
  for (int round = 0; round < 50; ++round) {
    Pipe pipe;
    int calls = 0;
    std::uint64_t watch = 0;
    REQUIRE(reactor->watch(
                nullptr, pipe.fds[0], BH_FD_READ,
                [](void *arg, std::int32_t, std::uint32_t) { ++*static_cast<int *>(arg); }, &calls,
                &watch) == BH_OK);
    REQUIRE(write(pipe.fds[1], "x", 1) == 1);
    reactor->poll(0);
    CHECK(calls == 1);
    REQUIRE(reactor->unwatch(watch) == BH_OK);
  }
  CHECK(reactor->held(nullptr).watches == 0);
}

TEST_CASE("wake() in a signal handler makes a waiting poll() return") {
  static Reactor *woken;
  auto reactor = make();
  woken = reactor.get();
  struct sigaction action{}, before{};
  action.sa_handler = [](int) { woken->wake(); };
  action.sa_flags = SA_RESTART;
  REQUIRE(sigaction(SIGUSR1, &action, &before) == 0);
  const pthread_t loop = pthread_self();
  std::atomic<bool> over{false};
  // sends the signal repeatedly, because each poll() below needs one
  std::thread sender([&] {
    while (!over) {
      pthread_kill(loop, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (int i = 0; i < 20; ++i) reactor->poll(-1);  // would wait forever without wake()
  over = true;
  sender.join();
  REQUIRE(sigaction(SIGUSR1, &before, nullptr) == 0);
}

TEST_CASE("timers run in chronological order; cancelled timers do not run") {
  auto reactor = make();
  std::vector<int> order;
  std::function<void()> first = [&] { order.push_back(1); };
  std::function<void()> second = [&] { order.push_back(2); };
  std::function<void()> never = [&] { order.push_back(3); };
  reactor->timer_start(nullptr, 2, call, &second);
  reactor->timer_start(nullptr, 1, call, &first);
  const auto timer = reactor->timer_start(nullptr, 1, call, &never);
  CHECK(reactor->timer_cancel(timer) == BH_OK);
  CHECK(reactor->timer_cancel(timer) == BH_STALE);
  while (order.size() < 2) reactor->poll(-1);
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("cancelled timers are removed from the heap") {
  auto reactor = make();
  for (int i = 0; i < 100'000; ++i) {
    reactor->timer_cancel(reactor->timer_start(reactor.get(), 60'000, call, nullptr));
  }
  CHECK(reactor->held(reactor.get()).timers == 0);
}

TEST_CASE("post wakes the loop from another thread; defer runs at the end of the turn") {
  auto reactor = make();
  std::vector<int> order;
  std::function<void()> deferred = [&] {
    order.push_back(2);
    reactor->stop();
  };
  std::function<void()> posted = [&] {
    reactor->defer(nullptr, call, &deferred);
    order.push_back(1);
  };
  std::thread other([&] { reactor->post(nullptr, call, &posted); });
  reactor->run();
  other.join();
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("the queue of posted functions is limited") {
  auto reactor = make();
  std::function<void()> nothing = [] {};
  for (std::uint32_t i = 0; i < Reactor::max_posted; ++i) {
    REQUIRE(reactor->post(nullptr, call, &nothing) == BH_OK);
  }
  CHECK(reactor->post(nullptr, call, &nothing) == BH_E_LIMIT);
  reactor->poll(0);
  CHECK(reactor->post(nullptr, call, &nothing) == BH_OK);
}

TEST_CASE("blocking work runs on a pool thread and completes on the loop's thread") {
  auto reactor = make();
  struct Work {
    std::promise<void> looked_at;  // the work runs until this is set
    std::thread::id worked, done;
  } work;
  REQUIRE(reactor->run_blocking(
              &work,
              [](void *arg) {
                auto &w = *static_cast<Work *>(arg);
                w.looked_at.get_future().wait();
                w.worked = std::this_thread::get_id();
              },
              [](void *arg) { static_cast<Work *>(arg)->done = std::this_thread::get_id(); },
              &work) == BH_OK);
  CHECK(reactor->held(&work).blocking == 1);
  work.looked_at.set_value();
  while (work.done == std::thread::id{}) reactor->poll(-1);
  CHECK(work.worked != std::this_thread::get_id());
  CHECK(work.done == std::this_thread::get_id());
  CHECK(reactor->held(&work).blocking == 0);
}

TEST_CASE("two jobs of one turn run in parallel even if one thread is already idle") {
  auto reactor = make();
  int done = 0;
  const auto count = [](void *arg) { ++*static_cast<int *>(arg); };
  REQUIRE(reactor->run_blocking(nullptr, [](void *) {}, count, &done) == BH_OK);
  while (done < 1) reactor->poll(-1);
  reactor->poll(20);  // the pool thread becomes idle
  struct Meeting {
    std::mutex mutex;
    std::condition_variable wake;
    int there = 0, met = 0, done = 0;
  } meeting;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(reactor->run_blocking(
                nullptr,
                [](void *arg) {
                  auto &m = *static_cast<Meeting *>(arg);
                  std::unique_lock lock(m.mutex);
                  ++m.there;
                  m.wake.notify_all();
                  // If the jobs ran one after the other, the first would time out.
                  const auto both = [&] { return m.there == 2; };
                  if (m.wake.wait_for(lock, std::chrono::seconds(10), both)) ++m.met;
                },
                [](void *arg) { ++static_cast<Meeting *>(arg)->done; }, &meeting) == BH_OK);
  }
  while (meeting.done < 2) reactor->poll(-1);
  CHECK(meeting.met == 2);
}

TEST_CASE("an idle period is reported once, and a timer does not end it") {
  static int idle_calls;
  idle_calls = 0;
  auto reactor = make();
  reactor->set_idle_handler([]() noexcept { ++idle_calls; });
  int ticks = 0;
  std::function<void()> count = [&] { ++ticks; };
  reactor->timer_start(nullptr, Reactor::first_idle_ms / 2, call, &count);
  while (idle_calls == 0) reactor->poll(-1);  // hangs if the idle handler is never called
  CHECK(ticks == 1);
  reactor->timer_start(nullptr, 5, call, &count);
  while (ticks < 2) reactor->poll(-1);
  CHECK(idle_calls == 1);
  // The posted function does not cause another call after first_idle_ms.
  reactor->post(nullptr, call, &count);
  while (ticks < 3) reactor->poll(-1);
  reactor->timer_start(nullptr, Reactor::first_idle_ms + 100, call, &count);
  while (ticks < 4) reactor->poll(-1);
  CHECK(idle_calls == 1);
}

TEST_CASE("a process keeps working after releasing idle memory") {
  std::vector<std::string> kept;
  for (int i = 0; i < 1'000; ++i) {
    kept.emplace_back(1'000, static_cast<char>('a' + i % 26));
    const std::vector<std::string> dropped(10, std::string(5'000, 'x'));
  }
  bulkhead::release_idle_memory();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    REQUIRE(kept[i] == std::string(1'000, static_cast<char>('a' + i % 26)));
  }
}

TEST_CASE("forget() removes all entries of one owner and no others") {
  auto reactor = make();
  Pipe pipe;
  int owner = 0, other = 0, calls = 0;
  std::function<void()> count = [&] { ++calls; };
  std::uint64_t watch = 0;
  reactor->watch(
      &owner, pipe.fds[1], BH_FD_WRITE,
      [](void *, std::int32_t, std::uint32_t) { FAIL("a forgotten watch reported"); }, nullptr,
      &watch);
  reactor->timer_start(&owner, 0, call, &count);
  reactor->post(&owner, call, &count);
  reactor->post(&other, call, &count);
  const auto held = reactor->held(&owner);
  CHECK(held.watches == 1);
  CHECK(held.timers == 1);
  CHECK(held.posted == 1);
  reactor->forget(&owner);
  reactor->poll(0);
  CHECK(calls == 1);
  CHECK(reactor->held(&owner).watches == 0);
}

TEST_CASE(
    "a posted task's data is freed once: after it runs, is forgotten, or the loop is destroyed") {
  const auto owned = std::make_shared<int>(0);
  auto loop = *Reactor::create();
  const int owner = 0, other = 0;
  int ran = 0;
  const auto post = [&](const void *of, std::function<void()> then = {}) {
    return post_owned(*loop, of, [&ran, owned, then] {
      ++ran;
      if (then) then();
    });
  };
  REQUIRE(post(&owner) == BH_OK);
  // This task runs after the first one and forgets the owner, so the third one never runs.
  REQUIRE(post(&owner, [&] { loop->forget(&owner); }) == BH_OK);
  REQUIRE(post(&owner) == BH_OK);
  REQUIRE(post(&other) == BH_OK);
  CHECK(owned.use_count() == 5);
  loop->poll(0);
  CHECK(ran == 3);
  CHECK(owned.use_count() == 1);
  REQUIRE(post(&owner) == BH_OK);
  REQUIRE(post(&other) == BH_OK);
  loop->forget(&owner);
  CHECK(owned.use_count() == 2);
  loop.reset();
  CHECK(owned.use_count() == 1);
  CHECK(ran == 3);
}
