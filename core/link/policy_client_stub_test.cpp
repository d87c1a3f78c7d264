// Tests the client stub of a policy link.
#include "link/client_stub_world.hpp"

using namespace bulkhead;
using namespace bulkhead::link;

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
