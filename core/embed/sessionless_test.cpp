// Tests transports whose messages do not require a session.
#define BH_STATIC_PLUGIN
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/tables.hpp"
#include "embed/fake_policy.hpp"
#include "embed/fake_world.hpp"
#include "embed/judged_world.hpp"

using namespace bulkhead;

namespace {

struct Sent {
  std::uint32_t kind;
  bh_session session;
  std::uint64_t stream;
  std::uint32_t http_status;
  std::string text;
};

// The host of the plugin below, and everything that the plugin receives.
struct Wire {
  const bh_host *host = nullptr;
  std::vector<Sent> sent;
  std::vector<bh_session> ended;
  std::uint64_t gone_in_send = 0;  // the stream that send() closes

  const bh_host_transport *table() const {
    return static_cast<const bh_host_transport *>(host->get_ext(host->ctx, BH_EXT_HOST_TRANSPORT));
  }
};
Wire wire;

bh_peer some_peer(std::string_view principal = "p") {
  bh_peer peer{};
  peer.size = sizeof peer;
  peer.flags = BH_PEER_HANDSHAKE_OPTIONAL;
  peer.transport = bh::str("test");
  peer.address = bh::str("somewhere");
  peer.principal = bh::str(principal);
  return peer;
}

class WirePlugin {
 public:
  static constexpr bh::Info info{.id = "wire",
                                 .name = "Wire",
                                 .version = "1",
                                 .vendor = "test",
                                 .config_schema = {},
                                 .provides = {BH_EXT_TRANSPORT}};
  explicit WirePlugin(const bh_host *host) {
    wire = Wire{};
    wire.host = host;
  }
  bh_status configure(bh_str, bh_error *) { return BH_OK; }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TRANSPORT) ? bh::transport_table<WirePlugin>() : nullptr;
  }
  bh_status listen(bh_error *) { return BH_OK; }
  void stop_accepting() {}
  bh_status send(const bh_outgoing &m) {
    std::string text;
    for (std::uint32_t i = 0; i < m.part_count; ++i) text += bh::view(m.parts[i]);
    wire.sent.push_back({m.kind, m.session, m.stream, m.http_status, text});
    if (wire.gone_in_send != 0) {
      wire.table()->stream_gone(wire.host->ctx, 0, std::exchange(wire.gone_in_send, 0));
    }
    return BH_OK;
  }
  void session_ended(bh_session session, bh_str) { wire.ended.push_back(session); }
  bh_str endpoint() { return bh::str("wire"); }
};
BH_PLUGIN(WirePlugin)

constexpr std::string_view discover =
    R"({"jsonrpc":"2.0","id":"d","method":"server/discover","params":{"_meta":{)"
    R"("io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientCapabilities":{}}}})";
constexpr std::string_view initialize =
    R"({"jsonrpc":"2.0","id":"i","method":"initialize","params":{)"
    R"("protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})";

constexpr std::uint32_t committing =
    BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS;

struct Delivered {
  bh_status status;
  std::uint32_t kind, flags;
};

// A gateway with this transport. If `commits` is set, responses wait until the test's telemetry
// plugin commits their records.
struct WireWorld : World {
  FakeJudge &judge = FakeJudge::get();
  std::vector<std::string> log;

  explicit WireWorld(bool commits = false) {
    judge = FakeJudge{};
    judge.telemetry_needs = commits ? committing : 0;
    profile.transports = {use("wire")};
    if (commits) profile.telemetry = {use("fake-telemetry")};
    profile.identity = {"/p.toml", "me"};
    profile.limits.sessions = 2;
  }
  void begin() {
    HostOptions options;
    options.static_plugins = {{"fake-connector", bh_static_entry_FakeConnector},
                              {"fake-telemetry", bh_static_entry_FakeTelemetry},
                              {"wire", bh_static_entry_WirePlugin}};
    options.log = [this](LogLevel, std::string_view, std::string_view text) {
      log.emplace_back(text);
    };
    auto created = Host::create(profile, std::move(options));
    REQUIRE(created.has_value());
    host = std::move(*created);
    REQUIRE(host->start().has_value());
    REQUIRE(host->run_until([&] { return host->settled(); }, 20'000));
  }
  static bh_incoming incoming(std::uint64_t stream, std::string_view text, const bh_peer *peer,
                              bh_session session = 0) {
    bh_incoming in = bh::incoming(session, stream, text);
    in.peer = peer;
    return in;
  }
  static Delivered deliver(const bh_incoming &in) {
    bh_delivery out{};
    out.size = sizeof out;
    const bh_status status = wire.table()->deliver(wire.host->ctx, &in, &out);
    return {status, out.kind, out.flags};
  }
  static Delivered deliver(std::uint64_t stream, std::string_view text) {
    const bh_peer peer = some_peer();
    return deliver(incoming(stream, text, &peer));
  }
  static void gone(std::uint64_t stream) { wire.table()->stream_gone(wire.host->ctx, 0, stream); }
  static bh_session open(std::string_view principal = "p") {
    const bh_peer peer = some_peer(principal);
    bh_session session = 0;
    CHECK(wire.table()->session_open(wire.host->ctx, &peer, &session, nullptr) == BH_OK);
    return session;
  }
  // Waits until n calls have been recorded, so that their records can be committed.
  bool recorded(std::size_t n) {
    return turn_until([&] {
      const auto is_call = [](const auto &one) { return one.kind == BH_RECORD_CALL; };
      return std::ranges::count_if(judge.records, is_call) >= static_cast<std::ptrdiff_t>(n);
    });
  }
  bool logged(std::string_view text) const {
    for (const std::string &line : log) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  }
};

bool has(const Sent &sent, std::string_view text) {
  return sent.text.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("the response to a sessionless message is sent on its stream, and no session remains") {
  WireWorld w;
  w.begin();
  const Delivered d = w.deliver(7, discover);
  CHECK(d.status == BH_OK);
  CHECK(d.kind == BH_DELIVERED_ANSWER);
  REQUIRE(wire.sent.size() == 1);
  CHECK(wire.sent[0].kind == BH_OUT_ANSWER);
  CHECK(wire.sent[0].session == 0);
  CHECK(wire.sent[0].stream == 7);
  CHECK(wire.sent[0].http_status == 0);
  CHECK(has(wire.sent[0], R"("id":"d","result":{"resultType":"complete","supportedVersions":[)"));
  CHECK(w.host->status().sessions == 0);

  // The stream number can be reused. This request uses a protocol revision with sessions and fails
  // because there is no initialized session.
  CHECK(w.deliver(7, R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})").status == BH_OK);
  REQUIRE(wire.sent.size() == 2);
  CHECK(has(wire.sent[1], "the session is not initialized"));
  CHECK(wire.sent[1].http_status == 400);

  // A malformed message gets one error response. A notification gets none.
  const Delivered malformed = w.deliver(8, "{");
  CHECK(malformed.kind == BH_DELIVERED_ANSWER);
  CHECK((malformed.flags & BH_DELIVERED_REFUSED) != 0);
  REQUIRE(wire.sent.size() == 3);
  CHECK(has(wire.sent[2], "-32700"));
  const Delivered note = w.deliver(9, R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  CHECK(note.status == BH_OK);
  CHECK(note.kind == BH_DELIVERED_NOTHING);
  CHECK((note.flags & BH_DELIVERED_READY) == 0);
  CHECK(wire.sent.size() == 3);
  CHECK(w.host->status().sessions == 0);
  CHECK(wire.ended.empty());
}

TEST_CASE("a response without a session is rejected") {
  WireWorld w;
  w.begin();
  std::uint64_t stream = 0;
  for (const std::string_view response :
       {R"({"jsonrpc":"2.0","id":1,"result":{}})",
        R"({"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"no"}})"}) {
    INFO(response);
    const Delivered d = w.deliver(++stream, response);
    CHECK(d.status == BH_OK);
    CHECK(d.kind == BH_DELIVERED_ANSWER);
    CHECK((d.flags & BH_DELIVERED_REFUSED) != 0);
    REQUIRE(wire.sent.size() == stream);
    CHECK(wire.sent.back().stream == stream);
    CHECK(wire.sent.back().http_status == 400);
    CHECK(has(wire.sent.back(), R"("error":{"code":-32600)"));
    CHECK(wire.sent.back().text.find(R"("id")") == std::string::npos);
  }
  CHECK(w.host->status().sessions == 0);
  // In a session, a response to an unknown request is ignored.
  const bh_session session = w.open();
  const Delivered d = w.deliver(
      WireWorld::incoming(9, R"({"jsonrpc":"2.0","id":1,"result":{}})", nullptr, session));
  CHECK(d.status == BH_OK);
  CHECK(d.kind == BH_DELIVERED_NOTHING);
  CHECK(wire.sent.size() == stream);
}

TEST_CASE("sessionless messages do not count as sessions and have a separate limit") {
  WireWorld w(true);
  w.begin();
  w.open();
  w.open();
  // The response waits until its record is committed.
  CHECK(w.deliver(1, discover).status == BH_OK);
  CHECK(w.deliver(2, discover).status == BH_OK);
  CHECK(wire.sent.empty());
  CHECK(w.host->status().sessions == 2);
  CHECK(w.deliver(3, discover).status == BH_E_LIMIT);
  REQUIRE(w.recorded(2));
  w.judge.commit();
  REQUIRE(w.turn_until([&] { return wire.sent.size() == 2; }));
  CHECK(wire.sent[0].stream == 1);
  CHECK(wire.sent[1].stream == 2);
  w.turn();
  CHECK(w.deliver(3, discover).status == BH_OK);
  CHECK(w.host->status().sessions == 2);
}

TEST_CASE("a closed stream cancels its sessionless message") {
  WireWorld w(true);
  w.begin();
  CHECK(w.deliver(1, discover).status == BH_OK);
  CHECK(w.deliver(2, discover).status == BH_OK);
  w.gone(1);
  w.gone(1);   // closed a second time
  w.gone(99);  // unknown stream
  REQUIRE(w.recorded(2));
  w.judge.commit();
  REQUIRE(w.turn_until([&] { return !wire.sent.empty(); }));
  w.turn(20);
  REQUIRE(wire.sent.size() == 1);
  CHECK(wire.sent[0].stream == 2);

  // While send() handles one message, it closes the stream of another.
  CHECK(w.deliver(3, discover).status == BH_OK);
  CHECK(w.deliver(4, discover).status == BH_OK);
  wire.gone_in_send = 4;
  REQUIRE(w.recorded(4));
  w.judge.commit();
  REQUIRE(w.turn_until([&] { return wire.sent.size() == 2; }));
  w.turn(20);
  CHECK(wire.sent.size() == 2);
  CHECK(wire.sent[1].stream == 3);
  CHECK(w.deliver(4, discover).status == BH_OK);  // the stream number can be reused
}

TEST_CASE("a message that would start a session is rejected") {
  WireWorld w;
  w.begin();
  const Delivered d = w.deliver(1, initialize);
  CHECK(d.status == BH_E_SESSION_LOST);
  CHECK(wire.sent.empty());
  CHECK(w.host->status().sessions == 0);

  const bh_session session = w.open();
  const Delivered opened = w.deliver(WireWorld::incoming(1, initialize, nullptr, session));
  CHECK(opened.status == BH_OK);
  CHECK((opened.flags & BH_DELIVERED_INITIALIZE) != 0);
  REQUIRE(wire.sent.size() == 1);
  CHECK(wire.sent[0].session == session);
  const auto deliver_to = [&](bh_session to) {
    return w.deliver(WireWorld::incoming(2, list_tools, nullptr, to)).status;
  };
  CHECK(deliver_to(session) == BH_OK);
  REQUIRE(w.turn_until([&] { return wire.sent.size() == 2; }));
  CHECK(wire.sent[1].session == session);
  CHECK(has(wire.sent[1], "a__x"));
  CHECK(deliver_to(session + 1) == BH_STALE);
  // This cancels nothing, because the message belongs to a session.
  wire.table()->stream_gone(wire.host->ctx, session, 2);
  CHECK(w.host->status().sessions == 1);
}

TEST_CASE("an invalid delivery by a transport is rejected, and the reason is logged") {
  WireWorld w(true);
  w.begin();
  const bh_peer peer = some_peer();
  bh_incoming in = WireWorld::incoming(1, discover, nullptr);
  CHECK(w.deliver(in).status == BH_E_INVALID);
  CHECK(w.logged("no peer and no session"));
  in.peer = &peer;
  in.flags = BH_INCOMING_HEADERS;

  const auto with = [&](std::string_view name, std::string_view value, std::uint32_t count = 1) {
    std::vector<bh_header> headers(count, bh_header{bh::str(name), bh::str(value)});
    in.headers = headers.data();
    in.header_count = count;
    return w.deliver(in).status;
  };
  CHECK(with("Mcp Name", "x") == BH_E_INVALID);
  CHECK(w.logged("the name of header 1 is not a token"));
  CHECK(with("Mcp-Name", "x\r\nAuthorization: secret-token") == BH_E_INVALID);
  CHECK(w.logged("the value of header \"Mcp-Name\" contains a control character"));
  CHECK_FALSE(w.logged("secret-token"));
  CHECK(with("Mcp-Name", "x", BH_HEADER_COUNT + 1) == BH_E_INVALID);
  CHECK(with("Mcp-Name", std::string(BH_HEADER_BYTES, 'x')) == BH_E_INVALID);
  CHECK(wire.sent.empty());
  CHECK(with("Mcp-Name", "\tx y", BH_HEADER_COUNT) == BH_OK);

  in.header_count = 0;
  CHECK(w.deliver(in).status == BH_E_INVALID);
  CHECK(w.logged("stream 1 is already open"));

  const bh_peer other = some_peer("q");
  const bh_session session = w.open();
  CHECK(w.deliver(WireWorld::incoming(5, initialize, &other, session)).status == BH_E_INVALID);
  CHECK(w.logged("the peer differs from the session's peer"));
  CHECK(w.deliver(WireWorld::incoming(5, initialize, &peer, session)).status == BH_OK);
}

TEST_CASE("a stopping host responds to sessionless messages") {
  WireWorld w(true);
  w.begin();
  CHECK(w.deliver(1, discover).status == BH_OK);
  CHECK(wire.sent.empty());
  w.host.reset();
  REQUIRE(wire.sent.size() == 1);
  CHECK(wire.sent[0].kind == BH_OUT_ANSWER);
  CHECK(wire.sent[0].session == 0);
  CHECK(wire.sent[0].stream == 1);
  CHECK(wire.sent[0].http_status == 503);
  CHECK(wire.ended.empty());
}
