// Tests both stubs of a policy link and of a telemetry link. The test acts as the opposite stub.
#include <catch2/catch.hpp>

#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "link/frames.hpp"
#include "link/policy_client_stub.hpp"
#include "link/policy_server_stub.hpp"
#include "link/telemetry_client_stub.hpp"
#include "link/telemetry_server_stub.hpp"
#include "link/texts.hpp"

using namespace bulkhead;
using namespace bulkhead::link;

namespace {

bh_limits small_limits() {
  bh_limits limits{};
  limits.size = sizeof limits;
  limits.message_bytes = 64u << 10;
  limits.write_queue_bytes = 1u << 20;
  return limits;
}

struct Loop {
  std::unique_ptr<Reactor> reactor = std::move(*Reactor::create());
  bool until(const std::function<bool()> &done) {
    for (int i = 0; i < 4'000 && !done(); ++i) reactor->poll(5);
    return done();
  }
  void turn() {
    for (int i = 0; i < 5; ++i) reactor->poll(1);
  }
};

// The opposite stub: stores incoming frames, and sends frames for the test.
struct Peer final : Channel::Receiver {
  struct Got {
    Frame frame;
    std::string payload;
  };
  std::vector<Got> got;
  bool ended = false;
  std::unique_ptr<Channel> channel;

  OwnedFd open(Reactor &reactor) {
    auto pair = socket_pair();
    REQUIRE(pair.has_value());
    ended = false;
    channel = std::make_unique<Channel>(reactor, std::move(pair->first), *this, 8u << 20, 16u << 20,
                                        false);
    return std::move(pair->second);
  }
  void frame(Channel &, const Frame &frame, std::string_view payload, OwnedFd) override {
    got.push_back({frame, std::string(payload)});
  }
  void closed(Channel &, std::string_view) override { ended = true; }
  void send(FrameKind kind, std::uint64_t exchange, std::uint32_t code = 0,
            std::string_view payload = {}, std::uint64_t value = 0) {
    Frame frame;
    frame.kind = kind;
    frame.exchange = exchange;
    frame.code = code;
    frame.value = value;
    REQUIRE(channel->send(frame, payload) == BH_OK);
  }
  void verdict(std::uint64_t exchange, std::uint32_t kind, std::string_view rewritten = {}) {
    const std::string head = to_bytes(VerdictText{"rule", "reason"});
    send(policy_verdict, exchange, kind, head + std::string(rewritten), head.size());
  }
};

struct Heard final : PolicyEvents, TelemetryEvents {
  struct Said {
    std::string what, text;
    std::uint64_t number = 0;
    std::uint32_t code = 0;
  };
  std::vector<Said> said;
  std::vector<std::string> ended;
  int taken = 0;
  std::uint64_t committed = 0;

  void policy_decided(std::uint64_t exchange, const bh_verdict &verdict) override {
    said.push_back(
        {"decided", std::string(bh::view(verdict.arguments)), exchange, verdict.verdict});
  }
  void policy_refused(std::uint64_t exchange, std::string_view why) override {
    said.push_back({"refused", std::string(why), exchange});
  }
  void policy_filtered(std::uint64_t question, bool listed) override {
    said.push_back({"filtered", {}, question, listed ? 1u : 0u});
  }
  void policy_changed() override { said.push_back({"changed", {}}); }
  void telemetry_taken() override { ++taken; }
  void telemetry_committed(const TelemetryClientStub &, std::uint64_t below) override {
    committed = below;
  }
  void process_unhealthy(const std::string &compartment) override { ended.push_back(compartment); }
};

bh_policy_request request_of(std::uint64_t number) {
  bh_policy_request request{};
  request.size = sizeof request;
  request.exchange = number;
  request.server = bh::str("s");
  request.name = bh::str("n");
  request.arguments = bh::str(R"({"a":1})");
  return request;
}

struct ClientStubWorld : Loop {
  Heard heard;
  Peer peer;
  bh_limits limits = small_limits();
  PolicyClientStub client{*reactor, "policy", limits, heard};
  const bh_policy &table = PolicyClientStub::table();

  void ready() {
    client.attach(peer.open(*reactor));
    peer.send(policy_needs, 0, BH_POLICY_DECIDES);
    REQUIRE(until([&] { return !heard.said.empty(); }));
    heard.said.clear();
  }
  bh_status decide(std::uint64_t number, std::string *why = nullptr) {
    const bh_policy_request request = request_of(number);
    bh_verdict verdict{};
    bh_error error = bh::make_error();
    const bh_status status = table.decide(&client, &request, &verdict, &error);
    if (why != nullptr) *why = bh::text(error);
    return status;
  }
  bh_status filter(std::uint64_t number) {
    const bh_policy_request request = request_of(number);
    return table.filter(&client, &request);
  }
};

}  // namespace

TEST_CASE(
    "client stub: requests wait for the first process, and all needs are assumed until then") {
  ClientStubWorld w;
  CHECK(w.table.needs(&w.client) == 127);
  CHECK(w.decide(1) == BH_PENDING);
  w.client.attach(w.peer.open(*w.reactor));
  w.turn();
  CHECK(w.peer.got.empty());
  w.peer.send(policy_needs, 0, BH_POLICY_DECIDES);
  REQUIRE(w.until([&] { return !w.peer.got.empty(); }));
  CHECK(w.table.needs(&w.client) == BH_POLICY_DECIDES);
  const Peer::Got &got = w.peer.got[0];
  CHECK(got.frame.kind == policy_decide);
  CHECK(got.payload.substr(got.frame.value) == R"({"a":1})");
  w.peer.verdict(1, BH_VERDICT_REWRITE, "{}");
  REQUIRE(w.until([&] { return w.heard.said.size() == 2; }));
  CHECK(w.heard.said[1].what == "decided");
  CHECK(w.heard.said[1].code == BH_VERDICT_REWRITE);
  CHECK(w.heard.said[1].text == "{}");
}

TEST_CASE("client stub: queued events that the policy does not evaluate are allowed") {
  ClientStubWorld w;
  const auto ask = [&](std::uint64_t number, std::uint32_t event) {
    bh_policy_request request = request_of(number);
    request.event = event;
    bh_verdict verdict{};
    return w.table.decide(&w.client, &request, &verdict, nullptr);
  };
  CHECK(ask(1, BH_EVENT_NOTIFICATION) == BH_PENDING);
  CHECK(ask(2, BH_EVENT_INPUT_REQUEST) == BH_PENDING);
  w.client.attach(w.peer.open(*w.reactor));
  w.peer.send(policy_needs, 0, BH_POLICY_DECIDES | BH_POLICY_JUDGES_INPUT);
  REQUIRE(w.until([&] { return !w.peer.got.empty() && w.heard.said.size() == 2; }));
  CHECK(w.heard.said[0].what == "decided");
  CHECK(w.heard.said[0].number == 1);
  CHECK(w.heard.said[0].code == BH_VERDICT_ALLOW);
  CHECK(w.peer.got.size() == 1);
  CHECK(w.peer.got[0].frame.exchange == 2);
}

TEST_CASE("client stub: unexpected verdicts and verdicts of the wrong type are ignored") {
  ClientStubWorld w;
  w.ready();
  REQUIRE(w.decide(1) == BH_PENDING);
  REQUIRE(w.filter(2) == BH_PENDING);
  w.peer.verdict(77, BH_VERDICT_ALLOW);
  w.peer.verdict(2, BH_VERDICT_ALLOW);
  w.peer.send(FrameKind::policy_filtered, 1, 1);
  w.peer.send(policy_refused, 2);
  w.turn();
  CHECK(w.heard.said.empty());
  w.client.unanswered(1, false);
  w.peer.verdict(1, BH_VERDICT_ALLOW);  // too late
  w.peer.send(FrameKind::policy_filtered, 2, 1);
  w.peer.send(FrameKind::policy_filtered, 2, 0);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  w.turn();
  REQUIRE(w.heard.said.size() == 1);
  CHECK(w.heard.said[0].what == "filtered");
  CHECK(w.heard.said[0].code == 1);
  CHECK(w.peer.got.back().frame.kind == policy_forget);
  CHECK(w.heard.ended.empty());
}

TEST_CASE(
    "client stub: when a process exits, pending requests are rejected and new requests fail") {
  ClientStubWorld w;
  w.ready();
  REQUIRE(w.decide(1) == BH_PENDING);
  REQUIRE(w.filter(2) == BH_PENDING);
  w.peer.channel.reset();
  REQUIRE(w.until([&] { return w.heard.said.size() == 2; }));
  for (const Heard::Said &said : w.heard.said) {
    CHECK(said.what == (said.number == 1 ? "refused" : "filtered"));
    CHECK(said.code == 0);
  }
  std::string why;
  CHECK(w.decide(3, &why) == BH_E_UNAVAILABLE);
  CHECK(why.find("is being restarted") != std::string::npos);
  CHECK(w.filter(4) == BH_E_UNAVAILABLE);
  w.heard.said.clear();
  w.ready();
  CHECK(w.decide(5) == BH_PENDING);
  w.client.give_up("it is no good");
  CHECK(w.heard.said.back().what == "refused");
  CHECK(w.decide(6, &why) == BH_E_UNAVAILABLE);
  CHECK(why.find("it is no good") != std::string::npos);
}

TEST_CASE("client stub: a process that does not acknowledge a request in time is unresponsive") {
  ClientStubWorld w;
  w.ready();
  REQUIRE(w.decide(1) == BH_PENDING);
  REQUIRE(w.decide(2) == BH_PENDING);
  w.peer.send(policy_waits, 1);
  w.turn();
  w.client.unanswered(1, true);
  w.turn();
  CHECK(w.heard.ended.empty());
  w.client.unanswered(2, true);
  CHECK(w.heard.ended.empty());  // not called inside unanswered()
  REQUIRE(w.decide(3) == BH_PENDING);
  REQUIRE(w.until([&] { return !w.heard.ended.empty(); }));
  CHECK(w.heard.ended[0] == "policy");
  REQUIRE(w.heard.said.size() == 1);
  CHECK(w.heard.said[0].number == 3);
  REQUIRE(w.until([&] { return w.peer.ended; }));
}

TEST_CASE(
    "client stub: a protocol violation disconnects the process and rejects pending requests") {
  ClientStubWorld w;
  w.ready();
  REQUIRE(w.decide(1) == BH_PENDING);
  SECTION("an unknown frame") {
    w.peer.send(lane_message, 1);
  }
  SECTION("a verdict whose head is longer than it") {
    w.peer.send(policy_verdict, 1, BH_VERDICT_ALLOW, "abc", 4);
  }
  SECTION("a verdict whose head is cut") {
    const std::string head = to_bytes(VerdictText{"rule", "reason"});
    w.peer.send(policy_verdict, 1, BH_VERDICT_ALLOW, head.substr(0, 7), 7);
  }
  SECTION("noise") {
    w.peer.send(policy_verdict, 1, BH_VERDICT_ALLOW, std::string(64, '\xff'), 64);
  }
  REQUIRE(w.until([&] { return !w.heard.ended.empty(); }));
  REQUIRE(w.heard.said.size() == 1);
  CHECK(w.heard.said[0].what == "refused");
}

TEST_CASE("client stub: bytes that are not a frame break the link") {
  ClientStubWorld w;
  auto pair = socket_pair();
  REQUIRE(pair.has_value());
  w.client.attach(std::move(pair->second));
  REQUIRE(w.decide(1) == BH_PENDING);
  const std::string noise(96, '\xee');
  REQUIRE(::send(pair->first.get(), noise.data(), noise.size(), MSG_NOSIGNAL) == 96);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  CHECK(w.heard.said[0].what == "refused");
}

TEST_CASE("client stub: texts and queued requests are limited") {
  ClientStubWorld w;
  const std::string large(400u << 10, 'x');
  bh_policy_request request = request_of(1);
  request.arguments = bh::str(large);
  bh_verdict verdict{};
  std::size_t held = 0;
  for (; held < 100; ++held) {
    request.exchange = held + 1;
    if (w.table.decide(&w.client, &request, &verdict, nullptr) != BH_PENDING) break;
  }
  CHECK(held == 2);  // 400 KiB each
  // These requests exceed the size limit for messages.
  w.client.attach(w.peer.open(*w.reactor));
  w.peer.send(policy_needs, 0, BH_POLICY_DECIDES);
  REQUIRE(w.until([&] { return w.heard.said.size() == 3; }));
  CHECK(w.peer.got.empty());
  CHECK(w.table.decide(&w.client, &request, &verdict, nullptr) == BH_E_LIMIT);
}

namespace {

// The policy plugin behind the server stub.
struct Judge {
  std::vector<std::uint64_t> asked;
  bh_status status = BH_OK;
  std::uint32_t verdict = BH_VERDICT_ALLOW;

  static bh_status judge(void *self, const bh_policy_request *request, bh_verdict *out) {
    auto &judge = *static_cast<Judge *>(self);
    judge.asked.push_back(request->exchange);
    if (out != nullptr) out->verdict = judge.verdict;
    return judge.status;
  }
  static const bh_policy &table() {
    static constexpr bh_policy table{
        sizeof(bh_policy),
        0,
        [](void *) -> std::uint32_t { return BH_POLICY_DECIDES; },
        [](void *self, const bh_policy_request *r, bh_verdict *out, bh_error *) {
          return judge(self, r, out);
        },
        [](void *self, const bh_policy_request *r, bh_str, bh_verdict *out, bh_error *) {
          return judge(self, r, out);
        },
        [](void *self, const bh_policy_request *r) { return judge(self, r, nullptr); },
        nullptr};
    return table;
  }
};

struct ServerStubWorld : Loop {
  Judge judge;
  Peer peer;
  bh_limits limits = small_limits();
  ServedPlugin plugin;
  std::unique_ptr<PolicyServerStub> server;

  ServerStubWorld() {
    plugin.policy = &Judge::table();
    plugin.self = &judge;
    server = std::make_unique<PolicyServerStub>(*reactor, limits, plugin);
    attach();
  }
  void attach() {
    server->attach(peer.open(*reactor));
    REQUIRE(until([&] { return !peer.got.empty(); }));
    CHECK(peer.got[0].frame.kind == policy_needs);
    peer.got.clear();
  }
  void ask(FrameKind kind, std::uint64_t number) {
    const std::string head = to_bytes(PolicyText{});
    peer.send(kind, number, 0, head + "{}", head.size());
  }
  const Peer::Got &answer() {
    REQUIRE(until([&] { return !peer.got.empty(); }));
    return peer.got.back();
  }
};

}  // namespace

TEST_CASE("server stub: the plugin's immediate verdicts are sent") {
  ServerStubWorld w;
  SECTION("a verdict") {
    w.ask(policy_decide, 5);
    CHECK(w.answer().frame.kind == policy_verdict);
    CHECK(w.answer().frame.exchange == 5);
    CHECK(w.answer().frame.code == BH_VERDICT_ALLOW);
  }
  SECTION("an unknown verdict is forwarded; the router rejects it") {
    w.judge.verdict = 77;
    w.ask(policy_observe, 5);
    CHECK(w.answer().frame.code == 77);
  }
  SECTION("an error") {
    w.judge.status = BH_E_IO;
    w.ask(policy_decide, 5);
    CHECK(w.answer().frame.kind == policy_refused);
  }
  SECTION("a filter result") {
    w.judge.status = BH_E_DENIED;
    w.ask(policy_filter, 5);
    CHECK(w.answer().frame.kind == FrameKind::policy_filtered);
    CHECK(w.answer().frame.code == 0);
  }
}

TEST_CASE(
    "server stub: the plugin's later verdicts are sent, and unexpected verdicts are ignored") {
  ServerStubWorld w;
  w.judge.status = BH_PENDING;
  w.ask(policy_decide, 5);
  CHECK(w.answer().frame.kind == policy_waits);
  const std::uint64_t number = w.judge.asked.back();
  w.peer.got.clear();
  SECTION("once") {
    w.server->filtered(number, true);  // wrong type
    w.server->decided(number, BH_VERDICT_BLOCK, {}, {});
    w.server->decided(number, BH_VERDICT_ALLOW, {}, {});
    CHECK(w.answer().frame.exchange == 5);
    w.turn();
    REQUIRE(w.peer.got.size() == 1);
    CHECK(w.peer.got[0].frame.code == BH_VERDICT_BLOCK);
  }
  SECTION("forgotten") {
    w.peer.send(policy_forget, 5);
    w.turn();
    w.server->decided(number, BH_VERDICT_ALLOW, {}, {});
    w.turn();
    CHECK(w.peer.got.empty());
  }
  SECTION("an answer for the previous endpoint does not match a number of the next one") {
    w.attach();
    w.ask(policy_decide, 5);
    CHECK(w.answer().frame.kind == policy_waits);
    CHECK(w.judge.asked.back() != number);
    w.peer.got.clear();
    w.server->decided(number, BH_VERDICT_ALLOW, {}, {});
    w.turn();
    CHECK(w.peer.got.empty());
    w.server->decided(w.judge.asked.back(), BH_VERDICT_ALLOW, {}, {});
    CHECK(w.answer().frame.exchange == 5);
  }
  SECTION("a rewrite larger than a message may be") {
    w.server->decided(number, BH_VERDICT_REWRITE, {}, std::string(1u << 20, 'x'));
    CHECK(w.answer().frame.kind == policy_refused);
  }
}

TEST_CASE("server stub: malformed requests do not reach the plugin") {
  ServerStubWorld w;
  w.peer.send(policy_decide, 5, 0, "abc", 4);
  w.peer.send(policy_decide, 5, 0, std::string(40, '\xff'), 40);
  w.ask(lane_message, 5);
  w.turn();
  CHECK(w.judge.asked.empty());
}

namespace {

struct Book {
  std::vector<std::uint64_t> numbers;
  std::uint32_t at_most = 1000;
  static const bh_telemetry &table() {
    static constexpr bh_telemetry table{
        sizeof(bh_telemetry), 0,
        [](void *self, const bh_record *const *records, std::uint32_t n) -> std::uint32_t {
          auto &book = *static_cast<Book *>(self);
          const std::uint32_t taken = std::min(n, book.at_most);
          for (std::uint32_t i = 0; i < taken; ++i) book.numbers.push_back(records[i]->number);
          return taken;
        },
        [](void *) -> std::uint32_t { return BH_TELEMETRY_TEXTS | BH_TELEMETRY_BLOCKS; }};
    return table;
  }
};

std::vector<std::uint64_t> numbers_in(std::string_view payload, std::uint32_t count) {
  std::vector<std::uint64_t> out;
  ArchiveReader reader(payload);
  for (std::uint32_t i = 0; i < count; ++i) {
    RecordText text;
    reader(text);
    out.push_back(text.number);
  }
  CHECK(reader.done());
  return out;
}

std::uint32_t offer(TelemetryClientStub &client, std::uint64_t first, std::uint32_t n) {
  std::vector<bh_record> records(n);
  std::vector<const bh_record *> pointers;
  for (std::uint32_t i = 0; i < n; ++i) {
    records[i].size = sizeof(bh_record);
    records[i].number = first + i;
    records[i].name = bh::str("tool");
    pointers.push_back(&records[i]);
  }
  return TelemetryClientStub::table().batch(&client, pointers.data(), n);
}

}  // namespace

TEST_CASE("telemetry: a limited number of records waits for the process and is delivered once") {
  Loop w;
  Heard heard;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  CHECK(offer(client, 100, 5000) == TelemetryClientStub::max_records);
  CHECK(offer(client, 9000, 1) == 0);
  CHECK(client.idle());  // no process is connected
  Book book;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  TelemetryServerStub server(*w.reactor, plugin);
  auto pair = socket_pair();
  server.attach(std::move(pair->first));
  client.attach(std::move(pair->second));
  CHECK_FALSE(client.idle());
  REQUIRE(w.until([&] { return client.kept() == 0; }));
  CHECK(heard.taken > 0);
  REQUIRE(book.numbers.size() == TelemetryClientStub::max_records);
  CHECK(book.numbers.front() == 100);
  CHECK(book.numbers.back() == 100 + TelemetryClientStub::max_records - 1);
  SECTION("records that the plugin did not accept are sent again") {
    book.numbers.clear();
    book.at_most = 2;
    CHECK(offer(client, 9000, 5) == 5);
    REQUIRE(w.until([&] { return client.kept() == 0; }));
    CHECK(book.numbers == std::vector<std::uint64_t>{9000, 9001, 9002, 9003, 9004});
  }
  SECTION("the same with several frames, in order") {
    book.numbers.clear();
    book.at_most = 2;
    std::vector<std::uint64_t> all;
    for (std::uint64_t frame = 0; frame < 3; ++frame) {
      CHECK(offer(client, 9000 + 3 * frame, 3) == 3);  // one frame per call
      for (std::uint64_t i = 0; i < 3; ++i) all.push_back(9000 + 3 * frame + i);
    }
    REQUIRE(w.until([&] { return client.kept() == 0; }));
    CHECK(book.numbers == all);
  }
  CHECK(heard.ended.empty());
}

TEST_CASE("telemetry: the plugin's needs and counters reach the client stub") {
  Loop w;
  Heard heard;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  const auto needs = [&] { return TelemetryClientStub::table().needs(&client); };
  // The stub reports all needs because it does not know the plugin's needs yet.
  CHECK(needs() ==
        (BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS | BH_TELEMETRY_BLOCKS));
  Book book;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  std::uint64_t written = 7;
  plugin.counters = [&] {
    return std::vector<std::pair<std::string, std::uint64_t>>{{"written", written}};
  };
  TelemetryServerStub server(*w.reactor, plugin);
  auto pair = socket_pair();
  server.attach(std::move(pair->first));
  client.attach(std::move(pair->second));
  REQUIRE(w.until([&] { return needs() == (BH_TELEMETRY_TEXTS | BH_TELEMETRY_BLOCKS); }));
  REQUIRE(w.until([&] { return client.counters().size() == 1; }));
  CHECK(client.counters()[0] == std::pair<std::string, std::uint64_t>{"written", 7});
  written = 8;
  REQUIRE(w.until([&] { return client.counters()[0].second == 8; }));
  Peer peer;
  SECTION("both are kept when the process ends") {
    client.attach(peer.open(*w.reactor));
    peer.channel.reset();
    REQUIRE(w.until([&] { return client.idle(); }));
    CHECK(needs() == (BH_TELEMETRY_TEXTS | BH_TELEMETRY_BLOCKS));
    CHECK(client.counters().size() == 1);
  }
  SECTION("the counters of the next process are added") {
    const auto sent = [&](std::uint64_t lost, std::uint64_t count) {
      CountersText text;
      text.values = {{"lost", lost}, {"written", count}};
      peer.send(FrameKind::telemetry_counters, 0, 0, to_bytes(text));
    };
    const auto total = [&](std::string_view name) {
      for (const auto &[counter, value] : client.counters()) {
        if (counter == name) return value;
      }
      return ~std::uint64_t{0};
    };
    client.attach(peer.open(*w.reactor));
    sent(1, 0);
    REQUIRE(w.until([&] { return total("lost") == 1; }));
    CHECK(total("written") == 8);
    sent(2, 5);
    REQUIRE(w.until([&] { return total("written") == 13; }));
    CHECK(total("lost") == 2);
    client.attach(peer.open(*w.reactor));
    sent(0, 1);
    REQUIRE(w.until([&] { return total("written") == 14; }));
    CHECK(total("lost") == 2);
    CHECK(client.counters().size() == 2);
  }
  SECTION("invalid counters end the process") {
    client.attach(peer.open(*w.reactor));
    CountersText bad;
    bad.values = {{"Not a\nname", 1}};
    peer.send(FrameKind::telemetry_counters, 0, 0, to_bytes(bad));
    REQUIRE(w.until([&] { return !heard.ended.empty(); }));
  }
}

TEST_CASE("telemetry: a required plugin is assumed to commit until it reports its needs") {
  Loop w;
  Heard heard;
  const auto commits = [](TelemetryClientStub &client) {
    return (TelemetryClientStub::table().needs(&client) & BH_TELEMETRY_COMMITS) != 0;
  };
  TelemetryClientStub required(*w.reactor, "telemetry", true, heard);
  TelemetryClientStub other(*w.reactor, "telemetry", false, heard);
  CHECK(commits(required));
  CHECK(commits(other));
  required.give_up("it ended five times");
  other.give_up("it ended five times");
  CHECK(commits(required));
  CHECK_FALSE(commits(other));
  SECTION("an earlier process has reported that it does not") {
    required.expect(BH_TELEMETRY_TEXTS);
    CHECK(TelemetryClientStub::table().needs(&required) == BH_TELEMETRY_TEXTS);
    required.expect(BH_TELEMETRY_COMMITS);  // no effect, because the needs are already known
    CHECK_FALSE(commits(required));
  }
  SECTION("an earlier process has reported that it does, and it is not started again") {
    TelemetryClientStub next(*w.reactor, "telemetry", false, heard);
    next.expect(BH_TELEMETRY_COMMITS | BH_TELEMETRY_EVENTS);
    next.give_up("it ended five times");
    CHECK(commits(next));
  }
}

TEST_CASE("telemetry: all members of a record are delivered") {
  Loop w;
  Heard heard;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  struct Reader {
    std::string request, response, trace, reason, id, claimed_name;
    std::uint64_t params = 0, result = 0;
    std::uint32_t action = 0, flags = 0, client_revision = 0, server_revision = 0;
  } reader;
  static constexpr bh_telemetry table{
      sizeof(bh_telemetry), 0,
      [](void *self, const bh_record *const *records, std::uint32_t n) -> std::uint32_t {
        auto &r = *static_cast<Reader *>(self);
        const bh_record &one = *records[0];
        r = {std::string(bh::view(one.request)),
             std::string(bh::view(one.response)),
             std::string(bh::view(one.trace_id)),
             std::string(bh::view(one.reason)),
             std::string(bh::view(one.request_id)),
             std::string(bh::view(one.claimed_name)),
             one.params_bytes,
             one.result_bytes,
             one.action,
             one.flags,
             one.client_revision,
             one.server_revision};
        return n;
      },
      nullptr};
  ServedPlugin plugin;
  plugin.telemetry = &table;
  plugin.self = &reader;
  TelemetryServerStub server(*w.reactor, plugin);
  auto pair = socket_pair();
  server.attach(std::move(pair->first));
  client.attach(std::move(pair->second));
  bh_record record{};
  record.size = sizeof record;
  record.number = 5;
  const std::string large(BH_RECORD_TEXT_BYTES, 'x');
  record.request = bh::str(large);
  record.response = bh::str("{}");
  record.trace_id = bh::str("t");
  record.reason = bh::str("why");
  record.request_id = bh::str("7");
  record.claimed_name = bh::str("Claude Code");
  record.params_bytes = 1u << 20;
  record.result_bytes = 2;
  record.action = BH_VERDICT_REWRITE;
  record.flags = BH_RECORD_REQUEST_CUT;
  record.client_revision = 20250618;
  record.server_revision = 20260728;
  const bh_record *pointer = &record;
  REQUIRE(TelemetryClientStub::table().batch(&client, &pointer, 1) == 1);
  REQUIRE(w.until([&] { return client.kept() == 0; }));
  CHECK(reader.request == large);
  CHECK(reader.response == "{}");
  CHECK(reader.trace == "t");
  CHECK(reader.reason == "why");
  CHECK(reader.id == "7");
  CHECK(reader.claimed_name == "Claude Code");
  CHECK(reader.params == 1u << 20);
  CHECK(reader.result == 2);
  CHECK(reader.action == BH_VERDICT_REWRITE);
  CHECK(reader.flags == BH_RECORD_REQUEST_CUT);
  CHECK(reader.client_revision == 20250618);
  CHECK(reader.server_revision == 20260728);
}

TEST_CASE("telemetry: unacknowledged records are sent to the next process") {
  Loop w;
  Heard heard;
  Peer peer;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  client.attach(peer.open(*w.reactor));
  CHECK(offer(client, 10, 3) == 3);
  REQUIRE(w.until([&] { return peer.got.size() == 1; }));
  CHECK(peer.got[0].frame.code == 3);
  peer.send(FrameKind::telemetry_taken, 11);
  REQUIRE(w.until([&] { return client.kept() == 2; }));
  peer.channel.reset();
  REQUIRE(w.until([&] { return client.idle(); }));
  peer.got.clear();
  client.attach(peer.open(*w.reactor));
  REQUIRE(w.until([&] { return peer.got.size() == 1; }));
  CHECK(peer.got[0].frame.code == 2);
  CHECK(numbers_in(peer.got[0].payload, 2) == std::vector<std::uint64_t>{11, 12});
  SECTION("acknowledging a record that was never sent ends the process") {
    peer.send(FrameKind::telemetry_taken, 1000);
    REQUIRE(w.until([&] { return !heard.ended.empty(); }));
    CHECK(client.kept() == 2);
  }
  SECTION("a frame of another kind ends the process") {
    peer.send(policy_verdict, 1);
    REQUIRE(w.until([&] { return !heard.ended.empty(); }));
  }
}

TEST_CASE("telemetry: a malformed batch closes the link and does not reach the plugin") {
  Loop w;
  Peer peer;
  Book book;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  TelemetryServerStub server(*w.reactor, plugin);
  bool lost = false;
  server.attach(peer.open(*w.reactor), [&] { lost = true; });
  SECTION("cut") {
    const std::string record = to_bytes(RecordText{});
    peer.send(telemetry_batch, 0, 2, record + record.substr(1));
  }
  SECTION("a count above the limit") {
    peer.send(telemetry_batch, 0, 1u << 30);
  }
  SECTION("a frame of another kind") {
    peer.send(policy_decide, 0);
  }
  REQUIRE(w.until([&] { return lost; }));
  CHECK(book.numbers.empty());
}

TEST_CASE("telemetry: records that the plugin has not accepted are limited in bytes") {
  Loop w;
  Peer peer;
  Book book;
  book.at_most = 0;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  TelemetryServerStub server(*w.reactor, plugin);
  bool lost = false;
  server.attach(peer.open(*w.reactor), [&] { lost = true; });
  const std::string text(BH_RECORD_TEXT_BYTES, 'x');
  RecordText large;
  large.request = text;
  const std::string one = to_bytes(large);
  const std::uint64_t fit = TelemetryServerStub::max_waiting_bytes / one.size();
  const auto send_batch = [&] {
    peer.send(telemetry_batch, 0, 1, one);
    w.turn();
    w.turn();
  };
  for (std::uint64_t i = 0; i < fit; ++i) send_batch();
  CHECK_FALSE(lost);
  peer.send(telemetry_batch, 0, 1, one);
  REQUIRE(w.until([&] { return lost; }));
}

TEST_CASE("telemetry: if a plugin commits, its records count as accepted once they are committed") {
  Loop w;
  Heard heard;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  struct Slow {
    std::uint32_t taken = 0;
  } slow;
  static constexpr bh_telemetry table{
      sizeof(bh_telemetry), 0,
      [](void *self, const bh_record *const *, std::uint32_t n) -> std::uint32_t {
        static_cast<Slow *>(self)->taken += n;
        return n;
      },
      [](void *) -> std::uint32_t { return BH_TELEMETRY_COMMITS | BH_TELEMETRY_EVENTS; }};
  ServedPlugin plugin;
  plugin.telemetry = &table;
  plugin.self = &slow;
  TelemetryServerStub server(*w.reactor, plugin);
  auto pair = socket_pair();
  server.attach(std::move(pair->first));
  client.attach(std::move(pair->second));
  CHECK(offer(client, 10, 3) == 3);
  REQUIRE(w.until([&] { return slow.taken == 3; }));
  CHECK(client.kept() == 3);
  server.committed(12);
  REQUIRE(w.until([&] { return client.kept() == 1; }));
  CHECK(heard.committed == 12);
  server.committed(1000);  // above the number of the last record
  REQUIRE(w.until([&] { return client.kept() == 0; }));
  CHECK(heard.committed == 13);
  CHECK(heard.ended.empty());
}

TEST_CASE("telemetry: a plugin that requests only calls receives only calls") {
  Loop w;
  Heard heard;
  TelemetryClientStub client(*w.reactor, "telemetry", true, heard);
  bh_record records[2] = {};
  const bh_record *pointers[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    records[i].size = sizeof(bh_record);
    records[i].number = 5 + i;
    records[i].kind = i == 0 ? BH_RECORD_APPROVAL : BH_RECORD_CALL;
    pointers[i] = &records[i];
  }
  // These records are sent before the plugin's needs are known.
  CHECK(TelemetryClientStub::table().batch(&client, pointers, 2) == 2);
  Book book;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  TelemetryServerStub server(*w.reactor, plugin);
  auto pair = socket_pair();
  server.attach(std::move(pair->first));
  client.attach(std::move(pair->second));
  REQUIRE(w.until([&] { return client.kept() == 0; }));
  CHECK(book.numbers == std::vector<std::uint64_t>{6});
}

TEST_CASE("telemetry: records that a restarted endpoint offers again reach the plugin once") {
  Loop w;
  Heard heard;
  Book book;
  ServedPlugin plugin;
  plugin.telemetry = &Book::table();
  plugin.self = &book;
  TelemetryServerStub server(*w.reactor, plugin);
  {
    TelemetryClientStub first(*w.reactor, "telemetry", true, heard);
    auto pair = socket_pair();
    server.attach(std::move(pair->first));
    first.attach(std::move(pair->second));
    CHECK(offer(first, 10, 3) == 3);
    REQUIRE(w.until([&] { return first.kept() == 0; }));
    CHECK(first.acknowledged_below() == 13);
  }
  TelemetryClientStub second(*w.reactor, "telemetry", true, heard);
  SECTION("numbers of the endpoint before this one") {
    second.set_earlier_below(15);
    auto pair = socket_pair();
    server.attach(std::move(pair->first));
    second.attach(std::move(pair->second));
    CHECK(offer(second, 11, 6) == 6);
    REQUIRE(w.until([&] { return second.kept() == 0; }));
    CHECK(book.numbers == std::vector<std::uint64_t>{10, 11, 12, 13, 14, 15, 16});
    CHECK(second.acknowledged_below() == 17);
  }
  SECTION("the clock was set back: the records are new ones") {
    auto pair = socket_pair();
    server.attach(std::move(pair->first));
    second.attach(std::move(pair->second));
    CHECK(offer(second, 5, 2) == 2);
    REQUIRE(w.until([&] { return second.kept() == 0; }));
    CHECK(book.numbers == std::vector<std::uint64_t>{10, 11, 12, 5, 6});
  }
  CHECK(heard.ended.empty());
}
