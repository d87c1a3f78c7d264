// Tests lanes against an endpoint that the test implements with a Unix socket and the frame codec.
#include "connector-vsock/connector_vsock.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <bulkhead/testing/fake_host.hpp>
#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <vector>

#include "connector-vsock/dial.hpp"
#include "mcp-frame/metadata_line.hpp"

using namespace connector_vsock;
using mcp_frame::Frame;

namespace {

constexpr int wait_ms = 5'000;

struct Got {
  std::uint32_t stream;
  bool notification;
  std::string name, payload;
};

// A fake host and an endpoint, both in the test's thread.
struct World {
  explicit World(bh_limits bounds = bh::testing::limits()) : limits(bounds) {
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    path = folder + "/endpoint";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    REQUIRE(::bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener, 8) == 0);
    make_tables();
    host.user = this;
    plugin = std::make_unique<ConnectorVsock>(host.host());
    bh_error error = bh::make_error();
    REQUIRE(plugin->configure(bh::str("{}"), &error) == BH_OK);
  }
  ~World() {
    plugin->stop();
    CHECK(host.watches() == 0);
    CHECK(host.timers() == 0);
    CHECK(host.faults().empty());
    plugin.reset();
    hang_up();
    ::close(listener);
    ::unlink(path.c_str());
    ::rmdir(folder.c_str());
  }

  static World &of(void *ctx) {
    return *static_cast<World *>(bh::testing::FakeHost::self(ctx).user);
  }
  void make_tables() {
    up.size = sizeof up;
    up.limits = &limits;
    up.message = [](void *c, bh_lane, std::uint64_t exchange, bh_str text) {
      of(c).messages.emplace_back(exchange, bh::view(text));
    };
    up.exchange_failed = [](void *c, bh_lane, std::uint64_t exchange,
                            const bh_lane_failure *failure) {
      const bh_error *error = failure->error;
      of(c).failed[exchange] = error->code;
    };
    up.lane_down = [](void *c, bh_lane, const bh_lane_failure *failure) {
      const bh_error *error = failure->error;
      of(c).downs.emplace_back(error->code, bh::text(*error));
    };
    up.lane_closed = [](void *c, bh_lane) { ++of(c).closed; };
    wire.size = sizeof wire;
    wire.lane_connected = [](void *c, bh_lane) { ++of(c).connected; };
    wire.lane_full = [](void *c, bh_lane, std::uint32_t full) { of(c).fulls.push_back(full); };
    host.add_ext(BH_EXT_HOST_CONNECTOR, &up);
    host.add_ext(BH_EXT_HOST_WIRE, &wire);
  }

  bh_status open(const std::string &more = {}, bh_error *error = nullptr) {
    const std::string definition =
        R"({"unix":")" + path + R"(","process_name":"my agent")" + more + "}";
    return open_as(definition, error);
  }
  bh_status open_as(const std::string &definition, bh_error *error = nullptr) {
    bh_lane_info info{};
    info.size = sizeof info;
    info.definition = bh::str(definition);
    info.connect_timeout_ms = 2'000;
    return plugin->lane_open(1, info, &lane, error);
  }
  bh_status send(std::uint32_t kind, std::uint64_t exchange, std::string_view text,
                 bh_error *error = nullptr) {
    const bh_str part = bh::str(text);
    bh_lane_message message{};
    message.size = sizeof message;
    message.kind = kind;
    message.exchange = exchange;
    message.part_count = 1;
    message.parts = &part;
    return plugin->lane_send(lane, message, error);
  }
  void accept() {
    REQUIRE(host.run_until(
        [&] { return (peer = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0; },
        wait_ms));
  }
  void hang_up() {
    if (peer >= 0) ::close(std::exchange(peer, -1));
  }
  bool read_some() {
    char some[65'536];
    const ssize_t n = ::recv(peer, some, sizeof some, 0);
    if (n == 0) peer_saw_end = true;
    if (n > 0) received.append(some, static_cast<std::size_t>(n));
    return n > 0;
  }
  // Reads the metadata line and n frames.
  std::vector<Got> frames(std::size_t n) {
    std::vector<Got> out;
    REQUIRE(host.run_until(
        [&] {
          while (read_some()) {
          }
          out = parse();
          return out.size() >= n;
        },
        wait_ms));
    return out;
  }
  std::vector<Got> parse() const {
    std::string_view rest = received;
    if (const auto meta = mcp_frame::parse_metadata(rest);
        meta.state == mcp_frame::Metadata::State::line) {
      rest.remove_prefix(meta.size);
    }
    std::vector<Got> out;
    while (rest.size() >= 4 && rest.size() >= 4 + mcp_frame::total_length(rest)) {
      Frame frame;
      const auto whole = rest.substr(0, 4 + mcp_frame::total_length(rest));
      REQUIRE(mcp_frame::decode(whole, &frame) == mcp_frame::Fault::none);
      out.push_back(
          {frame.stream, frame.notification, std::string(frame.name), std::string(frame.payload)});
      rest.remove_prefix(whole.size());
    }
    return out;
  }
  void answer(std::uint32_t stream, std::string_view payload) {
    Frame frame;
    frame.stream = stream;
    frame.notification = stream == 0;
    frame.payload = payload;
    std::string bytes;
    REQUIRE(mcp_frame::encode(frame, &bytes) == mcp_frame::Fault::none);
    raw(bytes);
  }
  void raw(std::string_view bytes) const {
    REQUIRE(::send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
  }
  void hold(bool on) { plugin->lane_hold(lane, on); }
  void close_lane() {
    plugin->lane_close(lane);
    REQUIRE(host.run_until([&] { return closed == 1; }, wait_ms));
  }
  void wait_down() {
    REQUIRE(host.run_until([&] { return !downs.empty(); }, wait_ms));
  }

  bh_limits limits;
  bh::testing::FakeHost host;
  bh_host_connector up{};
  bh_host_wire wire{};
  std::unique_ptr<ConnectorVsock> plugin;
  std::string folder = "/tmp/bulkhead-vsock-XXXXXX", path, received;
  int listener = -1, peer = -1;
  void *lane = nullptr;
  std::vector<std::pair<std::uint64_t, std::string>> messages;
  std::map<std::uint64_t, bh_status> failed;
  std::vector<std::pair<bh_status, std::string>> downs;
  int closed = 0, connected = 0;
  std::vector<std::uint32_t> fulls;
  bool peer_saw_end = false;
};

}  // namespace

TEST_CASE("the metadata line is sent first; stream numbers start at 1") {
  World w;
  REQUIRE(w.open() == BH_OK);
  REQUIRE(w.send(BH_LANE_REQUEST, 77, "{a}") == BH_OK);  // before the connection is established
  w.accept();
  REQUIRE(w.send(BH_LANE_NOTIFICATION, 0, "{n}") == BH_OK);
  REQUIRE(w.send(BH_LANE_RESPONSE, 0, "{r}") == BH_OK);
  REQUIRE(w.send(BH_LANE_REQUEST, 78, "{b}") == BH_OK);
  const auto got = w.frames(5);
  CHECK(w.connected == 1);
  CHECK(w.received.starts_with(std::string_view("\0CAPSEM_META:my_agent\n", 22)));
  CHECK(got[0].notification);
  CHECK(got[0].payload.find("notifications/bulkhead/duplex") != std::string::npos);
  CHECK((got[1].stream == 1 && got[1].payload == "{a}" && got[1].name == "my_agent"));
  CHECK((got[2].notification && got[2].payload == "{n}"));
  CHECK((got[3].notification && got[3].payload == "{r}"));
  CHECK((got[4].stream == 2 && got[4].payload == "{b}"));
  w.close_lane();
}

TEST_CASE(
    "responses in any order reach their exchanges; empty and server-initiated messages are "
    "handled") {
  World w;
  w.open(R"(,"duplex":false,"meta_prefix":"BULKHEAD_META")");
  w.accept();
  for (std::uint64_t i = 101; i <= 103; ++i) w.send(BH_LANE_REQUEST, i, "{}");
  CHECK(w.frames(3)[0].stream == 1);
  CHECK(w.received.find("BULKHEAD_META:") == 1);
  w.answer(3, "third");
  w.answer(0, "pushed");
  w.answer(9, "never asked");
  w.answer(2, "");
  w.answer(1, std::string(900'000, 'x').substr(0, 60'000));
  REQUIRE(w.host.run_until([&] { return w.messages.size() == 3; }, wait_ms));
  CHECK(w.messages[0] == std::pair<std::uint64_t, std::string>(103, "third"));
  CHECK(w.messages[1] == std::pair<std::uint64_t, std::string>(0, "pushed"));
  CHECK((w.messages[2].first == 101 && w.messages[2].second.size() == 60'000));
  CHECK(w.failed.at(102) == BH_E_CANCELLED);
  w.close_lane();
}

TEST_CASE(
    "a message above the frame limit is rejected; a message of exactly the limit is accepted") {
  bh_limits limits = bh::testing::limits();
  limits.write_queue_bytes = 8u << 20;
  World w(limits);
  w.open(R"(,"duplex":false)");
  w.accept();
  bh_error error = bh::make_error();
  const std::size_t largest = 1'052'672 - 16 - 8;  // minus the frame header and the name "my_agent"
  CHECK(w.send(BH_LANE_REQUEST, 1, std::string(largest + 1, 'x'), &error) == BH_E_INVALID);
  CHECK(bh::text(error).starts_with("frame encode failed"));
  CHECK(w.send(BH_LANE_REQUEST, 2, std::string(largest, 'x')) == BH_OK);
  const auto got = w.frames(1);
  CHECK((got[0].stream == 1 && got[0].payload.size() == largest));
  w.close_lane();
}

TEST_CASE("if the endpoint does not read, the queue fills up to its limit") {
  World w;
  w.open();
  w.accept();
  bh_status status = BH_OK;
  int sent = 0;
  for (; status == BH_OK && sent < 1000; ++sent) {
    status = w.send(BH_LANE_REQUEST, 1, std::string(100'000, 'x'));
    w.host.turn(0);
  }
  CHECK(status == BH_E_LIMIT);
  CHECK(w.fulls == std::vector<std::uint32_t>{1});
  CHECK(w.frames(static_cast<std::size_t>(sent)).size() == static_cast<std::size_t>(sent));
  CHECK(w.fulls == std::vector<std::uint32_t>{1, 0});
  CHECK(w.send(BH_LANE_REQUEST, 1, "{}") == BH_OK);
  w.close_lane();
}

TEST_CASE(
    "a held lane neither reads nor reports a lost connection; after the hold, all messages arrive "
    "in order") {
  World w;
  w.open(R"(,"duplex":false)");
  const bool before = GENERATE(true, false);
  if (before) w.hold(true);
  w.accept();
  w.send(BH_LANE_REQUEST, 5, "{}");
  w.frames(1);
  CHECK(w.connected == 1);
  w.hold(true);
  w.answer(1, "answer");
  w.answer(0, "pushed");
  const bool ended = GENERATE(true, false);
  if (ended) w.hang_up();
  for (int i = 0; i < 5; ++i) w.host.turn(0);
  CHECK(w.messages.empty());
  CHECK(w.downs.empty());
  CHECK(w.host.watches() == 0);  // watching a closed connection would make the loop spin
  w.hold(false);
  REQUIRE(w.host.run_until([&] { return w.messages.size() == 2; }, wait_ms));
  CHECK(w.messages[0] == std::pair<std::uint64_t, std::string>(5, "answer"));
  if (ended) w.wait_down();
  w.close_lane();
}

TEST_CASE("a held lane delivers received messages before it reports a write error") {
  World w;
  w.open(R"(,"duplex":false)");
  w.accept();
  w.send(BH_LANE_REQUEST, 5, "{}");
  w.frames(1);
  w.hold(true);
  w.answer(1, "answer");
  const bool whole = GENERATE(true, false);
  if (whole) {
    w.hang_up();
  } else {
    ::shutdown(w.peer, SHUT_RD);  // the lane sees no end of file
  }
  REQUIRE(w.send(BH_LANE_REQUEST, 6, "{}") == BH_OK);
  REQUIRE(w.host.run_until(
      [&] { return w.send(BH_LANE_NOTIFICATION, 0, "{}") == BH_E_UNAVAILABLE; }, wait_ms));
  CHECK(w.downs.empty());
  CHECK(w.messages.empty());
  w.hold(false);
  w.wait_down();
  REQUIRE(w.messages.size() == 1);
  CHECK(w.messages[0].second == "answer");
  w.close_lane();
  CHECK(w.downs.size() == 1);
}

TEST_CASE("after the last stream number, the connection accepts no requests") {
  World w;
  w.open(R"(,"duplex":false)");
  w.accept();
  static_cast<Lane *>(w.lane)->skip_to_stream(0xFFFFFFFF);
  CHECK(w.send(BH_LANE_REQUEST, 1, "{}") == BH_OK);
  CHECK(w.send(BH_LANE_REQUEST, 2, "{}") == BH_E_SESSION_LOST);
  CHECK(w.send(BH_LANE_NOTIFICATION, 0, "{}") == BH_OK);
  CHECK(w.frames(2)[0].stream == 0xFFFFFFFF);
  w.close_lane();
}

TEST_CASE("a lost connection is reported once, with the reason") {
  World w;
  w.open();
  w.accept();
  w.send(BH_LANE_REQUEST, 1, "{}");
  w.frames(2);
  SECTION("closed between frames") {
    w.hang_up();
    w.wait_down();
    CHECK(w.downs[0] == std::pair<bh_status, std::string>(BH_E_IO, "connection closed"));
  }
  SECTION("closed in the middle of a frame") {
    w.raw(std::string_view("\0\0\0\x20MC", 6));
    w.hang_up();
    w.wait_down();
    CHECK(w.downs[0].second == "connection closed in the middle of a frame");
  }
  SECTION("bytes that are not a frame") {
    w.raw("HTTP/1.1 400 Bad Request\r\n");
    w.wait_down();
    CHECK(w.downs[0].first == BH_E_PROTOCOL);
  }
  CHECK(w.send(BH_LANE_REQUEST, 2, "{}") == BH_E_UNAVAILABLE);
  w.close_lane();
  CHECK(w.downs.size() == 1);
}

TEST_CASE("an invalid response frame fails only its exchange") {
  World w;
  w.open();
  w.accept();
  w.send(BH_LANE_REQUEST, 5, "{}");
  w.frames(2);
  w.raw(std::string_view("\0\0\0\x12MC\x02\x10\0\0\0\x01\0\0\0\0\0\0\0\x02{}", 22));  // version 2
  w.answer(0, "still there");
  REQUIRE(w.host.run_until([&] { return !w.messages.empty(); }, wait_ms));
  CHECK(w.failed.at(5) == BH_E_PROTOCOL);
  CHECK(w.host.logged("the version is not 1"));
  w.close_lane();
}

TEST_CASE("finish() sends the queue and closes the sending side; responses are still received") {
  World w;
  w.open(R"(,"duplex":false)");
  w.send(BH_LANE_REQUEST, 5, "{}");
  w.plugin->lane_finish(w.lane);
  w.accept();
  CHECK(w.frames(1).size() == 1);
  REQUIRE(w.host.run_until([&] { return w.read_some() || w.peer_saw_end; }, wait_ms));
  CHECK(w.peer_saw_end);
  w.answer(1, "late");
  w.hang_up();
  w.wait_down();
  REQUIRE(w.messages.size() == 1);
  CHECK(w.messages[0].second == "late");
  w.close_lane();
}

TEST_CASE("the lane performs the handshake of a hybrid socket") {
  World w;
  REQUIRE(w.open_as(R"({"hybrid":")" + w.path + R"(","port":5005,"duplex":false})") == BH_OK);
  REQUIRE(w.send(BH_LANE_REQUEST, 1, "{}") == BH_OK);
  w.accept();
  REQUIRE(w.host.run_until([&] { return w.read_some(); }, wait_ms));
  CHECK(w.received == "CONNECT 5005\n");
  w.received.clear();
  SECTION("accepted, with the response in pieces") {
    w.raw("OK 10");
    w.host.run_for(30);
    CHECK(w.connected == 0);
    w.raw("73\n");
    CHECK(w.frames(1)[0].stream == 1);
    CHECK(w.connected == 1);
  }
  SECTION("a response other than OK") {
    w.raw("NO\n");
    w.wait_down();
    CHECK(w.downs[0].first == BH_E_UNAVAILABLE);
  }
  SECTION("closed without a response") {
    w.hang_up();
    w.wait_down();
    CHECK(w.downs[0].first == BH_E_UNAVAILABLE);
  }
  SECTION("a response without a newline") {
    w.raw(std::string(200, 'x'));
    w.wait_down();
    CHECK(w.downs[0].first == BH_E_UNAVAILABLE);
  }
  w.close_lane();
}

TEST_CASE("a missing endpoint is reported with the reason") {
  World w;
  bh_error error = bh::make_error();
  CHECK(w.open_as(R"({"unix":"/tmp/bulkhead-no-such-socket"})", &error) == BH_E_UNAVAILABLE);
  CHECK(bh::text(error).find("no such socket") != std::string_view::npos);
}

TEST_CASE("definitions are parsed and validated") {
  Definition out;
  const auto parse = [&](const char *json) {
    out = {};
    bh_error error = bh::make_error();
    return parse_definition(json, &out, &error);
  };
  CHECK(parse("{}") == BH_OK);
  CHECK(out.address() == "vsock:2:5002");
  CHECK(out.meta_prefix == "CAPSEM_META");
  CHECK(parse(R"({"cid":7,"port":9,"type":"vsock"})") == BH_OK);
  CHECK(out.address() == "vsock:7:9");
  CHECK(parse(R"({"hybrid":"/x","port":9})") == BH_OK);
  CHECK(out.address() == "hybrid:/x:9");
  for (const char *bad :
       {"", "[]", R"({"cid":-1})", R"({"port":"x"})", R"({"unix":""})", R"({"meta_prefix":"a b"})",
        R"({"unix":"/a","hybrid":"/b"})", R"({"duplex":1})", R"({"unix":7})"}) {
    CHECK(parse(bad) == BH_E_INVALID);
  }
}
