// Tests the limits that each end of a link enforces against a compromised process at the other end.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "link/client_stub.hpp"
#include "link/frames.hpp"
#include "link/server_stub.hpp"
#include "link/texts.hpp"

using namespace bulkhead;
using namespace bulkhead::link;

namespace {

struct Loop {
  std::unique_ptr<Reactor> reactor = std::move(*Reactor::create());
  bool until(const std::function<bool()> &done) {
    for (int i = 0; i < 2000 && !done(); ++i) reactor->poll(5);
    return done();
  }
};

// The other end of a socket. Stores incoming frames.
struct Peer final : Channel::Receiver {
  std::vector<Frame> got;
  std::vector<OwnedFd> fds;
  bool ended = false;
  std::unique_ptr<Channel> channel;

  Peer(Reactor &reactor, OwnedFd socket)
      : channel(std::make_unique<Channel>(reactor, std::move(socket), *this, 1u << 20, 8u << 20,
                                          true)) {}
  void frame(Channel &, const Frame &frame, std::string_view, OwnedFd fd) override {
    got.push_back(frame);
    if (fd) fds.push_back(std::move(fd));
  }
  void closed(Channel &, std::string_view) override { ended = true; }
  std::size_t count(std::uint16_t kind, std::uint32_t code = 0) const {
    std::size_t n = 0;
    for (const Frame &frame : got) n += frame.kind == kind && (code == 0 || frame.code == code);
    return n;
  }
};

struct Heard final : ClientStubEvents {
  std::vector<bh_lane> closed, down;
  void lane_message(bh_lane, std::uint64_t, std::string_view) override {}
  void lane_exchange_failed(bh_lane, std::uint64_t, const LaneFailure &) override {}
  void lane_down(bh_lane lane, const LaneFailure &) override { down.push_back(lane); }
  void lane_closed(bh_lane lane) override { closed.push_back(lane); }
  void call_complete(bh_call, std::uint32_t, std::string_view) override {}
  void call_failed(bh_call, const Error &) override {}
  void call_progress(bh_call, double, double, std::string_view) override {}
  void call_event(bh_call, std::uint32_t, std::string_view) override {}
  void tools_changed(const std::string &, std::uint32_t) override {}
  void tools_began(const std::string &) override {}
  void resource_updated(const std::string &, std::string_view) override {}
};

bh_limits limits_for_tests() {
  bh_limits limits{};
  limits.size = sizeof limits;
  limits.message_bytes = 64u << 10;
  limits.write_queue_bytes = 8u << 20;
  return limits;
}

struct Ends {
  OwnedFd one, two;
};
Ends pair() {
  auto made = socket_pair();
  REQUIRE(made.has_value());
  return {std::move(made->first), std::move(made->second)};
}

}  // namespace

TEST_CASE("descriptors and empty frames queued for a peer that does not read are limited") {
  Loop loop;
  Ends ends = pair();
  Peer silent(*loop.reactor, OwnedFd());
  Channel channel(*loop.reactor, std::move(ends.one), silent, 1024, 64u << 10, false);
  const OwnedFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::size_t taken = 0;
  while (taken < 2 * Channel::max_fds_queued &&
         channel.send(Frame(), std::string_view(), null.get()) == BH_OK)
    ++taken;
  CHECK(taken == Channel::max_fds_queued);
  std::size_t frames = 0;
  while (frames < 100'000 && channel.send(Frame()) == BH_OK) ++frames;
  CHECK((taken + frames) * sizeof(Frame) == 64u << 10);
}

// Regression test: under steady load, the queue is never empty, so bytes that were sent must be
// removed while it still contains others.
TEST_CASE("a queue that is never empty does not keep the bytes that were sent") {
  Loop loop;
  Ends ends = pair();
  Peer silent(*loop.reactor, OwnedFd());
  Channel channel(*loop.reactor, std::move(ends.one), silent, 1u << 20, 8u << 20, false);
  const std::string payload(64u << 10, 'x');
  for (int i = 0; i < 32; ++i) REQUIRE(channel.send(Frame(), payload) == BH_OK);
  std::string got(payload.size() + sizeof(Frame), '\0');
  std::uint64_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    const ssize_t n = ::recv(ends.two.get(), got.data(), got.size(), MSG_DONTWAIT);
    REQUIRE(n > 0);
    loop.reactor->poll(0);
    while (channel.queued() < 2u << 20) REQUIRE(channel.send(Frame(), payload) == BH_OK);
    most = std::max(most, channel.queue_memory());
  }
  CHECK(most <= 8u << 20);
}

TEST_CASE("incoming frames have a separate size limit") {
  Loop loop;
  Ends ends = pair();
  Peer small(*loop.reactor, std::move(ends.one));
  Peer large(*loop.reactor, std::move(ends.two));
  small.channel->accept(1000);
  REQUIRE(small.channel->send(Frame(), std::string(5000, 'x')) == BH_OK);
  REQUIRE(large.channel->send(Frame(), std::string(1000, 'x')) == BH_OK);
  CHECK(loop.until([&] { return small.got.size() == 1 && large.got.size() == 1; }));
  REQUIRE(large.channel->send(Frame(), std::string(1001, 'x')) == BH_OK);
  CHECK(loop.until([&] { return small.ended; }));
  CHECK(small.got.size() == 1);
}

TEST_CASE("a lane closes in time even if the server stub never reports lane_closed") {
  Loop loop;
  Heard heard;
  const bh_limits limits = limits_for_tests();  // without a grace period
  ClientStub client(*loop.reactor, "compartment", limits, heard);
  Ends ends = pair();
  Peer server(*loop.reactor, std::move(ends.two));
  client.attach(std::move(ends.one));
  void *self = client.plugin("connector");
  bh_lane_info info{};
  info.size = sizeof info;
  info.server = bh::str("s");
  void *lane = nullptr;
  bh_error error = bh::make_error();
  REQUIRE(ClientStub::connector().lane_open(self, 7, &info, &lane, &error) == BH_OK);
  REQUIRE(loop.until([&] { return server.fds.size() == 1; }));
  ClientStub::connector().lane_close(self, lane);
  CHECK(heard.closed.empty());
  CHECK(loop.until([&] { return heard.closed == std::vector<bh_lane>{7}; }));
}

TEST_CASE("a lane that does not fit into the queue is rejected or reported as down") {
  Loop loop;
  Heard heard;
  bh_limits limits = limits_for_tests();
  limits.write_queue_bytes = 64;  // only one frame fits until the end of an iteration
  ClientStub client(*loop.reactor, "compartment", limits, heard);
  Ends ends = pair();
  void *self = client.plugin("connector");
  std::vector<void *> lanes(2);
  const auto open = [&](std::size_t i) {
    bh_lane_info info{};
    info.size = sizeof info;
    info.server = bh::str("s");
    bh_error error = bh::make_error();
    return ClientStub::connector().lane_open(self, i, &info, &lanes[i], &error);
  };
  SECTION("when it is opened") {
    client.attach(std::move(ends.one));
    REQUIRE(open(0) == BH_OK);
    CHECK(open(1) == BH_E_LIMIT);
    loop.reactor->poll(0);
    CHECK(open(1) == BH_OK);
    CHECK(heard.down.empty());
  }
  SECTION("when the process has started") {
    REQUIRE(open(0) == BH_OK);
    REQUIRE(open(1) == BH_OK);
    client.attach(std::move(ends.one));
    REQUIRE(heard.down.size() == 1);
    ClientStub::connector().lane_close(self, lanes[heard.down[0]]);
    CHECK(heard.closed == heard.down);
  }
}

TEST_CASE("a compromised client stub can open only a limited number of lanes and calls") {
  Loop loop;
  const bh_limits limits = limits_for_tests();
  static int lanes = 0, calls = 0;
  lanes = calls = 0;
  bh_connector connector{};
  connector.size = sizeof connector;
  connector.lane_open = [](void *, bh_lane, const bh_lane_info *, void **out, bh_error *) {
    *out = &++lanes;
    return static_cast<bh_status>(BH_OK);
  };
  connector.lane_close = [](void *, void *) {};
  bh_tools tools{};
  tools.size = sizeof tools;
  tools.list = [](void *, const bh_list_info *, bh_buf *, bh_error *) {
    return static_cast<bh_status>(BH_E_UNSUPPORTED);
  };
  tools.call_begin = [](void *, bh_call, const bh_call_info *, bh_error *) {
    ++calls;
    return static_cast<bh_status>(BH_PENDING);
  };
  tools.call_cancel = [](void *, bh_call, const bh_cancel *) {};
  std::vector<ServedPlugin> plugins(2);
  plugins[0].id = "connector";
  plugins[0].connector = &connector;
  plugins[1].id = "tools";
  plugins[1].tools = &tools;
  const std::map<std::string, std::string> definitions{{"s", "{}"}};
  ServerStub server(*loop.reactor, limits, plugins, definitions);
  Ends trunk = pair();
  Peer client(*loop.reactor, std::move(trunk.one));
  server.attach(std::move(trunk.two));

  Frame open;
  open.kind = lane_open;
  std::vector<std::unique_ptr<Peer>> peers;
  // The test needs many descriptors because both ends of each lane are in this process.
  rlimit files{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
  files.rlim_cur = files.rlim_max;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
  for (std::size_t i = 0; i <= ServerStub::max_lanes; ++i) {
    Ends lane = pair();
    peers.push_back(std::make_unique<Peer>(*loop.reactor, std::move(lane.one)));
    REQUIRE(client.channel->send(open, to_bytes(LaneText{"connector", "s"}), lane.two.get()) ==
            BH_OK);
    if (i % 32 == 0) loop.reactor->poll(0);
  }
  CHECK(loop.until([&] { return peers.back()->ended; }));
  CHECK(peers.back()->count(FrameKind::lane_down, static_cast<std::uint32_t>(BH_E_LIMIT)) == 1);
  CHECK(lanes == static_cast<int>(ServerStub::max_lanes));
  CHECK(server.lanes() == ServerStub::max_lanes);

  Frame call;
  call.kind = call_begin;
  CallText named;
  named.plugin = "tools";
  const std::string text = to_bytes(named);
  for (std::size_t i = 0; i <= ServerStub::max_calls; ++i) {
    call.exchange = i + 1;
    REQUIRE(client.channel->send(call, text) == BH_OK);
  }
  CHECK(loop.until([&] { return client.count(call_refused) == 1; }));
  CHECK(client.count(call_refused, static_cast<std::uint32_t>(BH_E_LIMIT)) == 1);
  CHECK(calls == static_cast<int>(ServerStub::max_calls));
}
