// Tests the client stub of a policy link.
#include "link/judges_world.hpp"

using namespace bulkhead;
using namespace bulkhead::link;

namespace {

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

TEST_CASE("client stub: the next process receives requests once it has reported its needs") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  REQUIRE(w.decide(1) == BH_PENDING);
  REQUIRE(w.filter(2) == BH_PENDING);
  w.client.attach(second.open(*w.reactor));
  REQUIRE(w.decide(3) == BH_PENDING);  // still to the first process
  REQUIRE(w.until([&] { return w.peer.got.size() == 3; }));
  second.send(policy_needs, 0, BH_POLICY_DECIDES | BH_POLICY_READS_RESULTS);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  REQUIRE(w.heard.said.size() == 1);
  CHECK(w.heard.said[0].what == "changed");
  CHECK(w.table.needs(&w.client) == (BH_POLICY_DECIDES | BH_POLICY_READS_RESULTS));
  REQUIRE(w.decide(4) == BH_PENDING);
  REQUIRE(w.until([&] { return second.got.size() == 1; }));
  CHECK(second.got[0].frame.exchange == 4);
  REQUIRE(w.until([&] { return w.peer.got.size() == 4; }));
  CHECK(w.peer.got[3].frame.kind == policy_end);

  // Each process answers only what it has received.
  w.heard.said.clear();
  second.verdict(1, BH_VERDICT_ALLOW);
  w.peer.verdict(4, BH_VERDICT_ALLOW);
  w.turn();
  CHECK(w.heard.said.empty());
  w.peer.verdict(3, BH_VERDICT_BLOCK);
  w.peer.send(FrameKind::policy_filtered, 2, 1);
  second.verdict(4, BH_VERDICT_ALLOW);
  REQUIRE(w.until([&] { return w.heard.said.size() == 3; }));
  // What the first process reports about itself no longer matters.
  w.peer.send(policy_needs, 0, 0);
  w.peer.send(FrameKind::policy_changed, 0);
  w.turn();
  CHECK(w.heard.said.size() == 3);
  CHECK(w.table.needs(&w.client) == (BH_POLICY_DECIDES | BH_POLICY_READS_RESULTS));

  // When it exits, only its own requests are rejected.
  REQUIRE(w.decide(5) == BH_PENDING);
  w.heard.said.clear();
  w.peer.channel.reset();
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  REQUIRE(w.heard.said.size() == 1);
  CHECK(w.heard.said[0].what == "refused");
  CHECK(w.heard.said[0].number == 1);
  CHECK(w.decide(6) == BH_PENDING);
  CHECK(w.heard.ended.empty());
}

TEST_CASE("client stub: a process whose needs are known receives all further requests at once") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  constexpr std::uint32_t needs = BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS;
  REQUIRE(w.decide(1) == BH_PENDING);
  w.client.attach(second.open(*w.reactor), needs);
  CHECK(w.heard.said.size() == 1);
  CHECK(w.heard.said.at(0).what == "changed");
  CHECK(w.table.needs(&w.client) == needs);
  REQUIRE(w.decide(2) == BH_PENDING);
  REQUIRE(w.until([&] { return w.peer.got.size() == 2 && second.got.size() == 1; }));
  CHECK(w.peer.got[0].frame.exchange == 1);
  CHECK(w.peer.got[1].frame.kind == policy_end);
  CHECK(second.got[0].frame.exchange == 2);
  // The process also reports its needs; they are known already.
  second.send(policy_needs, 0, needs);
  w.turn();
  CHECK(w.heard.said.size() == 1);

  // The first process still answers what it has received.
  w.heard.said.clear();
  w.peer.verdict(1, BH_VERDICT_BLOCK);
  w.peer.verdict(2, BH_VERDICT_ALLOW);
  second.verdict(2, BH_VERDICT_BLOCK);
  REQUIRE(w.until([&] { return w.heard.said.size() == 2; }));
  for (const Heard::Said &said : w.heard.said) CHECK(said.code == BH_VERDICT_BLOCK);
  CHECK(w.heard.ended.empty());
}

TEST_CASE(
    "client stub: a process whose needs are known also takes over from one that is not ready") {
  constexpr std::uint32_t needs = BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS;
  ClientStubWorld w;
  Peer second;
  SECTION("it is starting") {
    w.client.attach(w.peer.open(*w.reactor));
    REQUIRE(w.decide(1) == BH_PENDING);
  }
  SECTION("no process was started yet") {
    REQUIRE(w.decide(1) == BH_PENDING);
  }
  SECTION("it was lost, and reported other needs before") {
    w.client.attach(w.peer.open(*w.reactor));
    w.peer.send(policy_needs, 0, 0);
    REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
    w.peer.channel.reset();
    REQUIRE(w.until([&] { return w.decide(1) == BH_E_UNAVAILABLE; }));
    CHECK(w.table.needs(&w.client) == 0);
  }
  SECTION("it was given up") {
    w.client.give_up("it is no good");
  }
  w.heard.said.clear();
  w.client.attach(second.open(*w.reactor), needs);
  CHECK(w.table.needs(&w.client) == needs);
  CHECK(w.client.failure().empty());
  REQUIRE(w.decide(2) == BH_PENDING);
  REQUIRE(w.until([&] { return !second.got.empty() && second.got.back().frame.exchange == 2; }));
  for (const Peer::Got &got : second.got) {
    CHECK(got.payload.substr(got.frame.value) == R"({"a":1})");
  }
  for (const Heard::Said &said : w.heard.said) CHECK(said.what == "changed");
}

TEST_CASE("client stub: if a process that has taken over at once fails, no process decides") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  REQUIRE(w.decide(1) == BH_PENDING);
  w.client.attach(second.open(*w.reactor), BH_POLICY_DECIDES);
  REQUIRE(w.decide(2) == BH_PENDING);
  w.heard.said.clear();
  second.channel.reset();
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  REQUIRE(w.heard.said.size() == 1);
  CHECK(w.heard.said[0].what == "refused");
  CHECK(w.heard.said[0].number == 2);
  CHECK(w.decide(3) == BH_E_UNAVAILABLE);
  w.peer.verdict(1, BH_VERDICT_BLOCK);
  REQUIRE(w.until([&] { return w.heard.said.size() == 2; }));
  CHECK(w.heard.said[1].what == "decided");
}

TEST_CASE("client stub: if the next process fails before it is ready, the current one decides") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  REQUIRE(w.decide(1) == BH_PENDING);
  w.client.attach(second.open(*w.reactor));
  second.channel.reset();
  w.turn();
  w.peer.verdict(1, BH_VERDICT_ALLOW);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  CHECK(w.heard.said[0].what == "decided");
  CHECK(w.decide(2) == BH_PENDING);
  CHECK(w.heard.ended.empty());
}

TEST_CASE("client stub: if the current process exits first, requests wait for the next one") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  REQUIRE(w.decide(1) == BH_PENDING);
  w.client.attach(second.open(*w.reactor));
  w.peer.channel.reset();
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  CHECK(w.heard.said[0].what == "refused");
  CHECK(w.heard.said[0].number == 1);
  w.heard.said.clear();
  REQUIRE(w.decide(2) == BH_PENDING);
  w.turn();
  CHECK(second.got.empty());
  second.send(policy_needs, 0, BH_POLICY_DECIDES);
  REQUIRE(w.until([&] { return second.got.size() == 1; }));
  second.verdict(2, BH_VERDICT_ALLOW);
  REQUIRE(w.until([&] { return w.heard.said.size() == 2; }));
  CHECK(w.heard.said.back().what == "decided");
}

TEST_CASE("client stub: the end of a replaced process does not affect requests that are queued") {
  ClientStubWorld w;
  w.ready();
  Peer second, third;
  w.client.attach(second.open(*w.reactor));
  second.send(policy_needs, 0, BH_POLICY_DECIDES);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  second.channel.reset();  // the new process crashes, and is restarted
  w.turn();
  w.client.attach(third.open(*w.reactor));
  w.heard.said.clear();
  REQUIRE(w.decide(4) == BH_PENDING);
  w.peer.channel.reset();
  w.turn();
  CHECK(w.heard.said.empty());
  third.send(policy_needs, 0, BH_POLICY_DECIDES);
  REQUIRE(w.until([&] { return third.got.size() == 1; }));
  CHECK(third.got[0].frame.exchange == 4);
}

TEST_CASE("client stub: a process cannot make requests to its successor fail") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  w.client.attach(second.open(*w.reactor));
  w.peer.send(plugin_failed, 0, 0, "sabotage");
  w.turn();
  CHECK(w.client.failure().find("sabotage") != std::string::npos);
  second.send(policy_needs, 0, BH_POLICY_DECIDES);
  REQUIRE(w.until([&] { return w.client.failure().empty(); }));
  CHECK(w.decide(1) == BH_PENDING);
}

TEST_CASE("client stub: queued requests that the next process does not want are not sent") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  w.client.attach(second.open(*w.reactor));
  w.peer.channel.reset();
  w.turn();
  REQUIRE(w.decide(2) == BH_PENDING);
  REQUIRE(w.filter(3) == BH_PENDING);
  const bh_policy_request request = request_of(4);
  bh_verdict verdict{};
  REQUIRE(w.table.observe(&w.client, &request, bh::str("{}"), &verdict, nullptr) == BH_PENDING);
  second.send(policy_needs, 0, BH_POLICY_READS_RESULTS);
  REQUIRE(w.until([&] { return second.got.size() == 1; }));
  CHECK(second.got[0].frame.kind == policy_observe);
  REQUIRE(w.heard.said.size() == 3);  // with "changed"
  CHECK(w.heard.said[0].what == "decided");
  CHECK(w.heard.said[0].code == BH_VERDICT_ALLOW);
  CHECK(w.heard.said[1].what == "filtered");
  CHECK(w.heard.said[1].code == 1);
}

TEST_CASE("client stub: a queued request that lacks data for the next process is rejected") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  w.client.attach(second.open(*w.reactor));
  w.peer.channel.reset();
  w.turn();
  REQUIRE(w.decide(2) == BH_PENDING);
  second.send(policy_needs, 0, BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  CHECK(w.heard.said[0].what == "refused");
  CHECK(w.heard.said[0].text.find("needs other data") != std::string::npos);
  CHECK(second.got.empty());
}

TEST_CASE("client stub: a replaced process that violates the protocol is not restarted") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  REQUIRE(w.decide(1) == BH_PENDING);
  w.client.attach(second.open(*w.reactor));
  second.send(policy_needs, 0, BH_POLICY_DECIDES);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  w.heard.said.clear();
  REQUIRE(w.decide(2) == BH_PENDING);
  w.peer.send(policy_decide, 7);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  REQUIRE(w.heard.said.size() == 1);
  CHECK(w.heard.said[0].number == 1);
  CHECK(w.heard.ended.empty());
  second.verdict(2, BH_VERDICT_ALLOW);
  REQUIRE(w.until([&] { return w.heard.said.size() == 2; }));
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
