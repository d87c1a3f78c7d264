// Tests the replacement of a policy's process, with and without its state.
#include "link/client_stub_world.hpp"

using namespace bulkhead;
using namespace bulkhead::link;

TEST_CASE("client stub: the next process receives requests once it is used") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  REQUIRE(w.decide(1) == BH_PENDING);
  REQUIRE(w.filter(2) == BH_PENDING);
  w.connect_next(second, BH_POLICY_DECIDES | BH_POLICY_READS_RESULTS);
  REQUIRE(w.decide(3) == BH_PENDING);  // still to the first process
  REQUIRE(w.until([&] { return w.peer.got.size() == 3; }));
  CHECK(w.table.needs(&w.client) == BH_POLICY_DECIDES);
  bool moved = false;
  w.client.move_state([&](const Result<void> &done) { moved = done.has_value(); });
  CHECK(moved);
  w.client.use_next();
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

TEST_CASE("client stub: a next process can also replace one that is not ready") {
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
  w.use_next(second, needs);
  CHECK(w.table.needs(&w.client) == needs);
  CHECK(w.client.failure().empty());
  REQUIRE(w.decide(2) == BH_PENDING);
  REQUIRE(w.until([&] { return !second.got.empty() && second.got.back().frame.exchange == 2; }));
  for (const Peer::Got &got : second.got) {
    CHECK(got.payload.substr(got.frame.value) == R"({"a":1})");
  }
  for (const Heard::Said &said : w.heard.said) CHECK(said.what == "changed");
}

TEST_CASE("client stub: if the process in use fails, no process decides") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  REQUIRE(w.decide(1) == BH_PENDING);
  w.use_next(second, BH_POLICY_DECIDES);
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
  std::optional<Result<void>> connected;
  w.client.connect_next(second.open(*w.reactor),
                        [&](const Result<void> &done) { connected = done; });
  SECTION("it exits") {
    second.channel.reset();
  }
  SECTION("it reports a failure") {
    second.send(plugin_failed, 0, 0, "no such rule book");
  }
  SECTION("it violates the protocol") {
    second.verdict(1, BH_VERDICT_ALLOW);
  }
  REQUIRE(w.until([&] { return connected.has_value(); }));
  REQUIRE_FALSE(connected->has_value());
  CHECK(
      connected->error().text.starts_with("compartment \"policy\": the policy was not replaced: "));
  w.peer.verdict(1, BH_VERDICT_ALLOW);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  CHECK(w.heard.said[0].what == "decided");
  CHECK(w.decide(2) == BH_PENDING);
  CHECK(w.heard.ended.empty());
}

TEST_CASE("client stub: the end of a replaced process does not affect requests that are queued") {
  ClientStubWorld w;
  w.ready();
  Peer second, third;
  w.use_next(second, BH_POLICY_DECIDES);
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
  w.connect_next(second, BH_POLICY_DECIDES);
  w.peer.send(plugin_failed, 0, 0, "sabotage");
  w.turn();
  CHECK(w.client.failure().find("sabotage") != std::string::npos);
  w.client.move_state([](const Result<void> &) {});
  w.client.use_next();
  CHECK(w.client.failure().empty());
  CHECK(w.decide(1) == BH_PENDING);
}

TEST_CASE("client stub: a replaced process that violates the protocol is not restarted") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  REQUIRE(w.decide(1) == BH_PENDING);
  w.use_next(second, BH_POLICY_DECIDES);
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

TEST_CASE("client stub: queued requests that the process does not want are not sent") {
  ClientStubWorld w;
  Peer second;
  w.client.attach(second.open(*w.reactor));
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

TEST_CASE("client stub: a queued request that lacks data for the restarted process is rejected") {
  ClientStubWorld w;
  w.ready();
  Peer second;
  w.peer.channel.reset();
  w.turn();
  w.client.attach(second.open(*w.reactor));
  REQUIRE(w.decide(2) == BH_PENDING);
  second.send(policy_needs, 0, BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  CHECK(w.heard.said[0].what == "refused");
  CHECK(w.heard.said[0].text.find("needs other data") != std::string::npos);
  CHECK(second.got.empty());
}

namespace {

// A current and a next process whose policies offer bh.state/1. The test acts as both.
struct StateWorld : ClientStubWorld {
  Peer second;
  std::optional<Result<void>> moved;
  static constexpr std::uint32_t first_needs = BH_POLICY_DECIDES | BH_POLICY_FILTERS_LISTS;

  explicit StateWorld(std::uint32_t next_needs = first_needs) {
    client.set_state_time(60'000);
    client.attach(peer.open(*reactor));
    peer.send(policy_needs, 0, first_needs, {}, 1);
    REQUIRE(until([&] { return !heard.said.empty(); }));
    connect_next(second, next_needs, true);
    heard.said.clear();
  }
  const Peer::Got *last(const Peer &of, std::uint16_t kind) const {
    for (auto at = of.got.rbegin(); at != of.got.rend(); ++at) {
      if (at->frame.kind == kind) return &*at;
    }
    return nullptr;
  }
  bool wait_for(const Peer &of, std::uint16_t kind) {
    return until([&] { return last(of, kind) != nullptr; });
  }
  void move() {
    moved.reset();
    client.move_state([this](const Result<void> &done) { moved = done; });
    REQUIRE(wait_for(peer, policy_export));
  }
  void exported(std::string_view bytes = "two calls") {
    const std::string state = to_bytes(StateText{7, 3, "test", bytes});
    peer.send(policy_state, last(peer, policy_export)->frame.exchange, BH_OK, state);
  }
  void imported(bh_status status = BH_OK, std::string_view why = {}) {
    REQUIRE(wait_for(second, policy_import));
    second.send(policy_imported, last(second, policy_import)->frame.exchange,
                static_cast<std::uint32_t>(status), why);
  }
  bool finished() {
    return until([&] { return moved.has_value(); });
  }
  std::string reason() {
    REQUIRE(finished());
    REQUIRE_FALSE(moved->has_value());
    return moved->error().text;
  }
  std::size_t count(const Peer &of, std::uint16_t kind) const {
    std::size_t n = 0;
    for (const Peer::Got &got : of.got) n += got.frame.kind == kind ? 1 : 0;
    return n;
  }
};

}  // namespace

TEST_CASE(
    "client stub: requests are queued while the state is moved, and the next process decides") {
  StateWorld w;
  REQUIRE(w.decide(1) == BH_PENDING);
  w.move();
  REQUIRE(w.decide(2) == BH_PENDING);
  REQUIRE(w.filter(3) == BH_PENDING);
  w.exported();
  w.imported();
  REQUIRE(w.finished());
  REQUIRE(w.moved->has_value());
  StateText state;
  REQUIRE(from_bytes(w.last(w.second, policy_import)->payload, &state));
  CHECK(state.bytes == "two calls");
  CHECK(state.link == 3);
  REQUIRE(w.decide(4) == BH_PENDING);  // still queued
  w.turn();
  CHECK(w.count(w.peer, policy_decide) == 1);
  CHECK(w.count(w.second, policy_decide) == 0);
  w.client.use_next();
  REQUIRE(w.until([&] { return w.second.got.size() == 4; }));
  CHECK(w.second.got[1].frame.exchange == 2);
  CHECK(w.second.got[2].frame.exchange == 3);
  CHECK(w.second.got[3].frame.exchange == 4);
  REQUIRE(w.wait_for(w.peer, policy_end));
  CHECK(w.count(w.peer, policy_decide) == 1);

  // The first process returns the request that it had not decided before the export.
  const Peer::Got &asked = *w.last(w.peer, policy_decide);
  w.peer.send(policy_returned, 1, policy_decide, asked.payload, asked.frame.value);
  REQUIRE(w.until([&] { return w.second.got.size() == 5; }));
  CHECK(w.second.got[4].frame.exchange == 1);
  CHECK(w.second.got[4].payload == asked.payload);
  w.peer.verdict(1, BH_VERDICT_ALLOW);  // too late
  w.second.verdict(1, BH_VERDICT_BLOCK);
  w.heard.said.clear();
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  REQUIRE(w.heard.said.size() == 1);
  CHECK(w.heard.said[0].code == BH_VERDICT_BLOCK);
}

TEST_CASE(
    "client stub: if the state is not moved, the current process receives the queued requests") {
  StateWorld w;
  std::string why;
  SECTION("the current process is too slow") {
    why = "it has not exported its state within 20 ms";
    w.client.set_state_time(20);
  }
  SECTION("the next process is too slow") {
    why = "the new process has not imported its state within 1000 ms";
    w.client.set_state_time(1'000);
  }
  w.move();
  REQUIRE(w.decide(1) == BH_PENDING);
  if (why.starts_with("the new process")) w.exported();
  SECTION("the export fails") {
    w.peer.send(policy_state, w.last(w.peer, policy_export)->frame.exchange,
                static_cast<std::uint32_t>(BH_E_LIMIT), "it is\ntoo large");
    why = "it is too large";
  }
  SECTION("the state is malformed") {
    w.peer.send(policy_state, w.last(w.peer, policy_export)->frame.exchange, BH_OK, "noise");
    why = "the state is malformed";
  }
  SECTION("the state exceeds the limit") {
    w.exported(std::string(BH_STATE_BYTES + 1, 'x'));
    why = "the state is malformed";
  }
  SECTION("the import fails") {
    w.exported();
    w.imported(BH_E_INVALID, "an unknown format");
    why = "the new process rejects the state: an unknown format";
  }
  SECTION("the next process exits") {
    w.exported();
    REQUIRE(w.wait_for(w.second, policy_import));
    w.second.channel.reset();
    why = "the new process: ";
  }
  const std::string reason = w.reason();
  INFO(reason);
  CHECK(reason.starts_with(
      "compartment \"policy\": the policy was not replaced, because its state was not moved: "));
  CHECK(reason.find(why) != std::string::npos);
  const bool late = why.find(" ms") != std::string::npos;
  CHECK((w.moved->error().code == BH_E_TIMEOUT) == late);
  REQUIRE(w.wait_for(w.peer, policy_decide));
  CHECK(w.last(w.peer, policy_decide)->frame.exchange == 1);
  CHECK(w.count(w.peer, policy_continue) == 1);
  w.client.discard_next();
  w.peer.verdict(1, BH_VERDICT_ALLOW);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  CHECK(w.heard.said[0].what == "decided");
  CHECK(w.heard.ended.empty());
  // What arrives too late has no effect.
  w.exported();
  w.turn();
  CHECK(w.decide(2) == BH_PENDING);
  REQUIRE(w.until([&] { return w.count(w.peer, policy_decide) == 2; }));
}

TEST_CASE("client stub: after a state was not moved in time, it can be moved again") {
  StateWorld w;
  w.client.set_state_time(1);
  w.move();
  CHECK_FALSE(w.reason().empty());
  const std::uint64_t first = w.last(w.peer, policy_export)->frame.exchange;
  w.peer.got.clear();
  w.client.set_state_time(60'000);
  w.move();
  REQUIRE(w.decide(1) == BH_PENDING);
  // The response to the first attempt is ignored.
  w.peer.send(policy_state, first, BH_OK, to_bytes(StateText{7, 3, "test", "old"}));
  w.turn();
  CHECK(w.last(w.second, policy_import) == nullptr);
  w.exported("new");
  w.imported();
  REQUIRE(w.finished());
  REQUIRE(w.moved->has_value());
  StateText state;
  REQUIRE(from_bytes(w.last(w.second, policy_import)->payload, &state));
  CHECK(state.bytes == "new");
  w.client.undo_move();
  REQUIRE(w.wait_for(w.peer, policy_decide));
  CHECK(w.last(w.peer, policy_continue) != nullptr);
}

TEST_CASE("client stub: a process that exits while it exports is replaced without its state") {
  StateWorld w;
  REQUIRE(w.decide(1) == BH_PENDING);
  w.move();
  REQUIRE(w.decide(2) == BH_PENDING);
  w.peer.channel.reset();
  REQUIRE(w.finished());
  REQUIRE(w.moved->has_value());
  REQUIRE(w.heard.said.size() == 1);
  CHECK(w.heard.said[0].what == "refused");
  CHECK(w.heard.said[0].number == 1);
  SECTION("the next process is used") {
    w.client.use_next();
    REQUIRE(w.wait_for(w.second, policy_decide));
    CHECK(w.last(w.second, policy_decide)->frame.exchange == 2);
  }
  SECTION("the next process is discarded") {
    w.client.discard_next();
    REQUIRE(w.heard.said.size() == 2);
    CHECK(w.heard.said[1].number == 2);
    CHECK(w.decide(3) == BH_E_UNAVAILABLE);
  }
}

TEST_CASE("client stub: queued requests have the data that the next policy needs") {
  constexpr std::uint32_t needs = BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS;
  StateWorld w(needs);
  REQUIRE(w.decide(1) == BH_PENDING);
  w.move();
  // The router evaluates the needs again when the rules have changed.
  CHECK(w.table.needs(&w.client) == (StateWorld::first_needs | BH_POLICY_READS_ARGUMENTS));
  REQUIRE(w.heard.said.size() == 1);
  CHECK(w.heard.said[0].what == "changed");
  REQUIRE(w.decide(2) == BH_PENDING);
  w.exported();
  w.imported();
  REQUIRE(w.finished());
  SECTION("it is used") {
    w.client.use_next();
    CHECK(w.table.needs(&w.client) == needs);
    REQUIRE(w.wait_for(w.second, policy_decide));
    CHECK(w.last(w.second, policy_decide)->frame.exchange == 2);
    // A request that was sent without this data cannot be decided by the next process.
    const Peer::Got &asked = *w.last(w.peer, policy_decide);
    w.heard.said.clear();
    w.peer.send(policy_returned, 1, policy_decide, asked.payload, asked.frame.value);
    REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
    CHECK(w.heard.said[0].what == "refused");
    CHECK(w.heard.said[0].text.find("needs other data") != std::string::npos);
  }
  SECTION("it is discarded") {
    w.client.discard_next();
    CHECK(w.table.needs(&w.client) == StateWorld::first_needs);
    CHECK(w.heard.said.size() == 2);
  }
}

TEST_CASE("client stub: only a replaced process may return requests, and only its own") {
  StateWorld w;
  REQUIRE(w.decide(1) == BH_PENDING);
  REQUIRE(w.wait_for(w.peer, policy_decide));
  const Peer::Got asked = *w.last(w.peer, policy_decide);
  SECTION("the current process returns a request") {
    w.peer.send(policy_returned, 1, policy_decide, asked.payload, asked.frame.value);
    REQUIRE(w.until([&] { return !w.heard.ended.empty(); }));
  }
  SECTION("the replaced process returns a request that it has not received") {
    w.move();
    w.exported();
    w.imported();
    REQUIRE(w.finished());
    w.client.use_next();
    REQUIRE(w.decide(2) == BH_PENDING);
    REQUIRE(w.filter(3) == BH_PENDING);
    REQUIRE(w.until([&] { return w.count(w.second, policy_filter) == 1; }));
    for (const std::uint64_t number : {2u, 3u, 99u}) {
      w.peer.send(policy_returned, number, policy_decide, asked.payload, asked.frame.value);
    }
    w.turn();
    CHECK(w.count(w.second, policy_decide) == 1);
    w.peer.send(policy_returned, 1, policy_filter, asked.payload, asked.frame.value);
    REQUIRE(w.until([&] { return w.peer.ended; }));
    CHECK(w.heard.ended.empty());
  }
}

TEST_CASE("client stub: a policy without state replaces one with state, which is reported") {
  ClientStubWorld w;
  Peer second;
  w.client.attach(w.peer.open(*w.reactor));
  w.peer.send(policy_needs, 0, BH_POLICY_DECIDES, {}, 1);
  REQUIRE(w.until([&] { return !w.heard.said.empty(); }));
  w.heard.said.clear();
  w.use_next(second, BH_POLICY_DECIDES);
  REQUIRE(w.heard.said.size() == 2);
  CHECK(w.heard.said[0].what == "dropped");
  CHECK(w.heard.said[1].what == "changed");
}

TEST_CASE("client stub: if the compartment is given up, its state is not moved") {
  StateWorld w;
  w.move();
  REQUIRE(w.decide(1) == BH_PENDING);
  w.client.give_up("it is no good");
  CHECK(w.reason().find("it is no good") != std::string::npos);
  REQUIRE(w.heard.said.size() == 1);
  CHECK(w.heard.said[0].what == "refused");
}
