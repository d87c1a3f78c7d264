// Tests requests that fail within start() because no file descriptor is available.
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "fixture.hpp"

using namespace connector_http::testing;

namespace {

// Prevents the process from opening file descriptors until this object is destroyed.
class NoDescriptors {
 public:
  NoDescriptors() {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit none = before_;
    none.rlim_cur = 3;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors &) = delete;
  NoDescriptors &operator=(const NoDescriptors &) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("opening an event stream is retried, and then the lane is down") {
  std::atomic<bool> end = false;
  Server server([&](const Request &r, Peer &peer) {
    if (r.method != "GET") return void(handshake_step(r, peer));
    peer.begin_events();
    peer.event("retry: 20\ndata: {\"method\":\"n\"}\n\n");
    while (!end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    peer.close();
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  REQUIRE(f.handshake(lane));
  REQUIRE(f.wait_events(1));
  {
    const NoDescriptors none;
    end = true;
    // Three attempts fail. Each starts after the previous one has failed.
    REQUIRE(f.wait([&] { return f.count(Event::down, 1) == 1; }));
  }
  CHECK(f.seen.events.back().code == BH_E_UNAVAILABLE);
  REQUIRE(f.close(lane));
  CHECK(f.host.faults().empty());
}

TEST_CASE("a call that cannot be started fails, and the lane is unaffected") {
  Server server([](const Request &r, Peer &peer) {
    if (!handshake_step(r, peer)) peer.answer(200, result(2));
  });
  Fixture f;
  void *lane = f.open(Fixture::definition(server.url()));
  {
    const NoDescriptors none;
    for (int i = 0; i < 3; ++i) CHECK(f.send(lane, 2, call(2)) == BH_E_UNAVAILABLE);
  }
  REQUIRE(f.send(lane, 2, call(2)) == BH_OK);
  REQUIRE(f.wait_events(1));
  CHECK(f.seen.events[0].text == result(2));
  REQUIRE(f.close(lane));
}

TEST_CASE("messages that were not sent because HTTP+SSE did not start do not count as queued") {
  bh_limits limits = bh::testing::limits();
  limits.write_queue_bytes = 1u << 20;
  Server server([](const Request &, Peer &) {});
  Fixture f(&limits);
  void *lane = f.open(R"({"type":"sse","url":")" + server.url() + "\"}");
  const std::string large(600u << 10, 'x');
  const NoDescriptors none;
  for (int i = 0; i < 3; ++i) {
    CHECK(f.send(lane, 1, large, BH_LANE_REQUEST, BH_LANE_INITIALIZE) == BH_E_UNAVAILABLE);
  }
}
