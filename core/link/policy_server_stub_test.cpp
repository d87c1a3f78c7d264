// Tests the server stub of a policy link.
#include "link/judges_world.hpp"

using namespace bulkhead;
using namespace bulkhead::link;

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

TEST_CASE("server stub: it is drained when no requests follow and all are answered") {
  ServerStubWorld w;
  CHECK_FALSE(w.server->drained());
  w.judge.status = BH_PENDING;
  w.ask(policy_decide, 5);
  w.ask(policy_filter, 6);
  REQUIRE(w.until([&] { return w.judge.asked.size() == 2; }));
  w.peer.send(policy_end, 0);
  w.turn();
  CHECK_FALSE(w.server->drained());
  w.server->decided(w.judge.asked[0], BH_VERDICT_ALLOW, {}, {});
  CHECK_FALSE(w.server->drained());
  w.server->filtered(w.judge.asked[1], true);
  REQUIRE(w.until([&] { return w.server->drained(); }));  // the answer has been written

  // The next client stub can send requests again.
  w.peer.got.clear();
  w.attach();
  CHECK_FALSE(w.server->drained());
  w.peer.channel.reset();
  REQUIRE(w.until([&] { return w.server->drained(); }));
}

TEST_CASE("server stub: malformed requests do not reach the plugin") {
  ServerStubWorld w;
  w.peer.send(policy_decide, 5, 0, "abc", 4);
  w.peer.send(policy_decide, 5, 0, std::string(40, '\xff'), 40);
  w.ask(lane_message, 5);
  w.turn();
  CHECK(w.judge.asked.empty());
}
