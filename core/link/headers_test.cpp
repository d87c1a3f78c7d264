// Tests message headers on a link, sent by correct and by compromised client stubs.
#include <catch2/catch.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/cpp/messages.hpp"
#include "link/client_stub.hpp"
#include "link/frames.hpp"
#include "link/server_stub.hpp"
#include "link/texts.hpp"

using namespace bulkhead;
using namespace bulkhead::link;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Got {
  std::uint32_t kind = 0, flags = 0;
  std::uint64_t exchange = 0;
  std::string text;
  Pairs headers;
};

// A connector that stores the messages it receives.
struct Wire {
  std::vector<Got> got;
  bh_lane handle = 0;  // of the last lane
  static bh_status open(void *self, bh_lane lane, const bh_lane_info *, void **out, bh_error *) {
    static_cast<Wire *>(self)->handle = lane;
    *out = out;
    return BH_OK;
  }
  static bh_status send(void *self, void *, const bh_lane_message *m, bh_error *) {
    Got got{m->kind, m->flags, m->exchange, {}, {}};
    for (std::uint32_t i = 0; i < m->part_count; ++i) got.text += bh::view(m->parts[i]);
    for (const bh_header &header : bh::headers(*m)) {
      got.headers.emplace_back(bh::view(header.name), bh::view(header.value));
    }
    static_cast<Wire *>(self)->got.push_back(std::move(got));
    return BH_OK;
  }
};

struct Heard final : ClientStubEvents {
  std::vector<std::pair<std::uint64_t, Error>> failed;
  bool down = false;
  void lane_message(bh_lane, std::uint64_t, std::string_view) override {}
  void lane_exchange_failed(bh_lane, std::uint64_t exchange, const LaneFailure &failure) override {
    failed.emplace_back(exchange, failure.error);
    failures.push_back(failure);
  }
  void lane_down(bh_lane, const LaneFailure &failure) override {
    down = true;
    failures.push_back(failure);
  }
  std::vector<LaneFailure> failures;
  void lane_closed(bh_lane) override {}
  void call_complete(bh_call, std::uint32_t, std::string_view) override {}
  void call_failed(bh_call, const Error &) override {}
  void call_progress(bh_call, double, double, std::string_view) override {}
  void call_event(bh_call, std::uint32_t, std::string_view) override {}
  void tools_changed(const std::string &, std::uint32_t) override {}
  void tools_began(const std::string &) override {}
  void resource_updated(const std::string &, std::string_view) override {}
};

// Stores the frames from a server stub. The test acts as the client stub.
struct Frames final : Channel::Receiver {
  std::vector<std::pair<Frame, std::string>> got;
  bool ended = false;
  void frame(Channel &, const Frame &frame, std::string_view payload, OwnedFd) override {
    got.emplace_back(frame, payload);
  }
  void closed(Channel &, std::string_view) override { ended = true; }
};

struct Link {
  std::unique_ptr<Reactor> reactor = std::move(*Reactor::create());
  bh_limits limits{};
  Wire wire;
  bh_connector table{};
  std::vector<ServedPlugin> plugins{1};
  std::map<std::string, std::string> definitions{{"s", "{}"}};
  std::unique_ptr<ServerStub> server;

  explicit Link(std::uint64_t message_bytes = 4096) {
    limits.size = sizeof limits;
    limits.message_bytes = message_bytes;
    limits.write_queue_bytes = 4u << 20;
    table.size = sizeof table;
    table.lane_open = Wire::open;
    table.lane_send = Wire::send;
    table.lane_close = [](void *, void *) {};
    plugins[0].id = "connector";
    plugins[0].connector = &table;
    plugins[0].self = &wire;
    server = std::make_unique<ServerStub>(*reactor, limits, plugins, definitions);
  }
  bool until(const std::function<bool()> &done) {
    for (int i = 0; i < 2000 && !done(); ++i) reactor->poll(5);
    return done();
  }
};

std::pair<OwnedFd, OwnedFd> pair() {
  auto made = socket_pair();
  REQUIRE(made.has_value());
  return std::move(*made);
}

// A client stub at the other end of the link, and its open lane.
struct OpenLane {
  Heard heard;
  ClientStub client;
  void *self = nullptr, *lane = nullptr;

  explicit OpenLane(Link &link) : client(*link.reactor, "compartment", link.limits, heard) {
    auto [one, two] = pair();
    link.server->attach(std::move(two));
    client.attach(std::move(one));
    self = client.plugin("connector");
    bh_lane_info info{};
    info.size = sizeof info;
    info.server = bh::str("s");
    REQUIRE(ClientStub::connector().lane_open(self, 1, &info, &lane, nullptr) == BH_OK);
  }
};

}  // namespace

TEST_CASE("headers cross a link only with their own message") {
  Link link;
  OpenLane open(link);
  auto &[heard, client, self, lane] = open;

  const auto send = [&](std::uint64_t exchange, std::uint32_t flags, std::string_view text,
                        const Pairs &pairs, bh_error *error = nullptr) {
    std::vector<bh_header> headers;
    for (const auto &[name, value] : pairs) headers.push_back({bh::str(name), bh::str(value)});
    const bh_str parts[] = {bh::str(text.substr(0, 1)), bh::str(text.substr(1))};
    bh_lane_message message{};
    message.size = sizeof message;
    message.kind = BH_LANE_REQUEST;
    message.exchange = exchange;
    message.flags = flags;
    message.part_count = 2;
    message.parts = parts;
    message.headers = headers.data();
    message.header_count = static_cast<std::uint32_t>(headers.size());
    return ClientStub::connector().lane_send(self, lane, &message, error);
  };
  const Pairs some = {{"Mcp-Method", "tools/call"}, {"Mcp-Param-Empty", ""}};
  CHECK(send(1, BH_LANE_INITIALIZE, "{1}", some) == BH_OK);
  CHECK(send(2, BH_LANE_REPEATABLE, "{2}", {}) == BH_OK);
  // A message of maximum size with the maximum number of headers.
  const std::string large(link.limits.message_bytes, 'm');
  Pairs most(BH_HEADER_COUNT,
             {"Mcp-Param-A", std::string(BH_HEADER_BYTES / BH_HEADER_COUNT - 11, 'v')});
  CHECK(send(3, 0, large, most) == BH_OK);
  REQUIRE(link.until([&] { return link.wire.got.size() == 3; }));
  const auto &got = link.wire.got;
  CHECK(got[0].text == "{1}");
  CHECK(got[0].flags == BH_LANE_INITIALIZE);
  CHECK(got[0].kind == BH_LANE_REQUEST);
  CHECK(got[0].headers == some);
  CHECK(got[1].text == "{2}");
  CHECK(got[1].flags == BH_LANE_REPEATABLE);
  CHECK(got[1].headers.empty());
  CHECK(got[2].text == large);
  CHECK(got[2].flags == 0);
  CHECK(got[2].headers == most);

  // The client stub rejects invalid headers.
  bh_error error = bh::make_error();
  most.emplace_back("Mcp-Name", "x");
  CHECK(send(4, 0, "{}", most, &error) == BH_E_INVALID);
  CHECK(send(4, 0, "{}", {{"Mcp-Name", "a\r\nHost: b"}}, &error) == BH_E_INVALID);
  CHECK(bh::text(error) == R"(the value of header "Mcp-Name" contains a control character)");
  CHECK(send(5, 0, "{5}", {}) == BH_OK);
  REQUIRE(link.until([&] { return got.size() == 4; }));
  CHECK(got[3].exchange == 5);
  CHECK(heard.failed.empty());
  CHECK_FALSE(heard.down);
}

TEST_CASE("headers from a compromised client stub are limited and validated") {
  Link link;
  auto [trunk, server_trunk] = pair();
  Frames on_trunk, on_lane;
  Channel trunk_channel(*link.reactor, std::move(trunk), on_trunk, 1u << 20, 1u << 20, false);
  link.server->attach(std::move(server_trunk));
  auto [client_lane, plugin_lane] = pair();
  Channel lane(*link.reactor, std::move(client_lane), on_lane, 1u << 20, 1u << 20, false);
  Frame open;
  open.kind = lane_open;
  REQUIRE(trunk_channel.send(open, to_bytes(LaneText{"connector", "s"}), plugin_lane.get()) ==
          BH_OK);

  std::uint64_t exchange = 0;
  const auto refused = [&](std::uint32_t header_bytes, const std::string &payload) {
    Frame frame;
    frame.kind = lane_send;
    frame.code = lane_code(BH_LANE_REQUEST, header_bytes);
    frame.exchange = ++exchange;
    REQUIRE(lane.send(frame, payload) == BH_OK);
    REQUIRE(link.until([&] { return on_lane.got.size() == exchange || on_lane.ended; }));
    const auto &[answer, text] = on_lane.got.back();
    CHECK(answer.kind == lane_failed);
    CHECK(answer.exchange == exchange);
    CHECK(static_cast<bh_status>(answer.code) == BH_E_INVALID);
    FailureText failure;
    REQUIRE(from_bytes(text, &failure));
    CHECK(failure.error == "cannot parse the message headers");
  };
  const auto archived = [](std::size_t n, std::string_view name, std::string_view value) {
    HeadersText text;
    text.headers.assign(n, {name, value});
    return to_bytes(text);
  };
  refused(5, "{}");                           // longer than the payload
  refused(8, std::string(8, '\xFF') + "{}");  // lengths that exceed the payload
  refused(max_header_bytes + 1, std::string(max_header_bytes + 1, 'x'));
  const std::string many = archived(BH_HEADER_COUNT + 1, "A", "1");
  refused(static_cast<std::uint32_t>(many.size()), many + "{}");
  const std::string split = archived(1, "A", "1\r\nHost: b");
  refused(static_cast<std::uint32_t>(split.size()), split + "{}");
  refused(static_cast<std::uint32_t>(split.size() - 1), split + "{}");
  CHECK(link.wire.got.empty());

  // The lane remains usable.
  const std::string sound = archived(1, "A", "1");
  Frame frame;
  frame.kind = lane_send;
  frame.code = lane_code(BH_LANE_NOTIFICATION, sound.size());
  REQUIRE(lane.send(frame, sound + "{}") == BH_OK);
  REQUIRE(link.until([&] { return link.wire.got.size() == 1; }));
  CHECK(link.wire.got[0].kind == BH_LANE_NOTIFICATION);
  CHECK(link.wire.got[0].text == "{}");
  CHECK(link.wire.got[0].headers == Pairs{{"A", "1"}});
}

TEST_CASE("a failure crosses a link with its challenges, status and scope") {
  Link link;
  OpenLane open(link);
  auto &[heard, client, self, lane] = open;
  REQUIRE(link.until([&] { return link.server->lanes() == 1; }));
  LaneFailure failure({BH_E_AUTH, "authentication required"}, 3000);
  failure.http_status = 401;
  failure.challenges = {"Bearer realm=\"r\", scope=\"a b\"", "Basic"};
  failure.scope = "a b";
  const bh_lane there = link.wire.handle;
  link.server->exchange_failed(there, 5, failure);
  link.server->lane_down(there, failure);
  REQUIRE(link.until([&] { return heard.down; }));
  REQUIRE(heard.failures.size() == 2);
  for (const LaneFailure &got : heard.failures) {
    CHECK(got.error.code == BH_E_AUTH);
    CHECK(got.error.text == "authentication required");
    CHECK(got.retry_after_ms == 3000);
    CHECK(got.http_status == 401);
    CHECK(got.challenges == failure.challenges);
    CHECK(got.scope == "a b");
  }
  REQUIRE(heard.failed.size() == 1);
  CHECK(heard.failed[0].first == 5);
}

TEST_CASE("a failure from a compromised connector is limited") {
  Link link(2u << 20);
  OpenLane open(link);
  auto &[heard, client, self, lane] = open;
  REQUIRE(link.until([&] { return link.server->lanes() == 1; }));
  LaneFailure many(BH_E_AUTH, std::string(2'000, 'e'));
  many.challenges.assign(20, "Basic");
  many.challenges[1] = std::string(BH_CHALLENGE_BYTES + 1, 'x');
  many.scope = "a\x1b[31m";
  LaneFailure large(BH_E_AUTH, std::string(1u << 20, 'e'));
  link.server->exchange_failed(link.wire.handle, 5, many);
  link.server->exchange_failed(link.wire.handle, 6, large);
  REQUIRE(link.until([&] { return heard.failures.size() == 2; }));
  CHECK(heard.failures[0].error.text == std::string(sizeof(bh_error::text), 'e'));
  CHECK(heard.failures[0].challenges == std::vector<std::string>(BH_CHALLENGE_COUNT, "Basic"));
  CHECK(heard.failures[0].scope.empty());
  CHECK(heard.failures[1].error.code == BH_E_PROTOCOL);
  CHECK(heard.failures[1].challenges.empty());
}
