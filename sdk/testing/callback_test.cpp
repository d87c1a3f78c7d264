#include <bulkhead/cpp/callback.hpp>
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/testing/fake_host.hpp>
#include <catch2/catch.hpp>
#include <stdexcept>

namespace {

struct Counter {
  int runs = 0;
  std::uint32_t events = 0;
  int done = 0;

  void run() { ++runs; }
  void ready(std::uint32_t ready_events) { events = ready_events; }
  void fail() {
    ++runs;
    throw std::runtime_error("thrown by the test");
  }
};

}  // namespace

TEST_CASE("callback: calls a member or a stateless function of the object") {
  Counter counter;
  const bh::Callback member = bh::callback<&Counter::run>(&counter);
  CHECK(member.arg == &counter);
  member.fn(member.arg);
  const bh::Callback function = bh::callback(&counter, [](Counter &it) { it.runs += 10; });
  function.fn(function.arg);
  CHECK(counter.runs == 11);
}

TEST_CASE("callback: a descriptor's function takes the events or no argument") {
  Counter counter;
  const bh::FdCallback with = bh::fd_callback<&Counter::ready>(&counter);
  with.fn(with.arg, 5, BH_FD_WRITE);
  CHECK(counter.events == BH_FD_WRITE);
  const bh::FdCallback without = bh::fd_callback<&Counter::run>(&counter);
  without.fn(without.arg, 5, BH_FD_READ);
  const bh::FdCallback function =
      bh::fd_callback(&counter, [](Counter &it, std::uint32_t events) { it.events |= events; });
  function.fn(function.arg, 5, BH_FD_READ);
  CHECK(counter.runs == 1);
  CHECK(counter.events == (BH_FD_WRITE | BH_FD_READ));
}

TEST_CASE("callback: a contained callback discards exceptions") {
  Counter counter;
  const bh::Callback call = bh::contained_callback<&Counter::fail>(&counter);
  CHECK_NOTHROW(call.fn(call.arg));
  const bh::FdCallback ready = bh::contained_fd_callback<&Counter::fail>(&counter);
  CHECK_NOTHROW(ready.fn(ready.arg, 5, BH_FD_READ));
  CHECK(counter.runs == 2);
}

TEST_CASE("callback: work and completion get the same object") {
  Counter counter;
  const auto job = bh::blocking_work(
      &counter, [](Counter &it) { it.runs = 3; }, [](Counter &it) { it.done = it.runs; });
  job.work(job.arg);
  job.done(job.arg);
  CHECK(counter.done == 3);
  const auto members = bh::blocking_work<&Counter::run, &Counter::run>(&counter);
  members.work(members.arg);
  members.done(members.arg);
  CHECK(counter.runs == 5);
}

TEST_CASE("callback: converts to a function and an argument for the host") {
  bh::testing::FakeHost fake;
  const bh::Host host(fake.host());
  Counter counter;
  CHECK(host.post(bh::callback<&Counter::run>(&counter)) == BH_OK);
  host.defer(bh::callback<&Counter::run>(&counter));
  CHECK(host.timer_start(0, bh::callback<&Counter::run>(&counter)) != 0);
  CHECK(fake.run_until([&] { return counter.runs == 3; }, 20'000));
}
