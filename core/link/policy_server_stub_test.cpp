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
        [](void *self, const bh_policy_request *r, bh_error *) { return judge(self, r, nullptr); },
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
    CHECK(peer.got[0].frame.value == (plugin.state == nullptr ? 0 : 1));
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

namespace {

// The state of the policy behind the server stub.
struct JudgeState {
  bh_status status = BH_OK;
  std::string schema = "test", bytes = "state";
  std::uint32_t fd_count = 0;
  std::string taken;

  static const bh_state &table() {
    static constexpr bh_state table{
        sizeof(bh_state), 0,
        [](void *self, bh_state_blob *out, bh_error *error) -> bh_status {
          const auto &state = of(self);
          out->version = 7;
          out->schema = bh::str(state.schema);
          out->bytes = bh::str(state.bytes);
          out->fd_count = state.fd_count;
          return state.status == BH_OK ? BH_OK : bh::fail(error, state.status, "no state today");
        },
        [](void *self, const bh_state_blob *blob, bh_error *error) -> bh_status {
          auto &state = of(self);
          if (bh::view(blob->schema) != state.schema || blob->version != 7)
            return bh::fail(error, BH_E_INVALID, "an unknown schema");
          state.taken = bh::view(blob->bytes);
          return BH_OK;
        }};
    return table;
  }
  static JudgeState &of(void *self);
};

struct StatefulJudge : Judge, JudgeState {};

JudgeState &JudgeState::of(void *self) {
  return *static_cast<StatefulJudge *>(static_cast<Judge *>(self));
}

struct StatefulWorld : Loop {
  StatefulJudge judge;
  Peer peer;
  bh_limits limits = small_limits();
  ServedPlugin plugin;
  std::unique_ptr<PolicyServerStub> server;

  StatefulWorld() {
    plugin.policy = &Judge::table();
    plugin.state = &JudgeState::table();
    plugin.self = static_cast<Judge *>(&judge);
    server = std::make_unique<PolicyServerStub>(*reactor, limits, plugin);
    attach();
  }
  void attach() {
    server->attach(peer.open(*reactor));
    REQUIRE(until([&] { return !peer.got.empty(); }));
    CHECK(peer.got[0].frame.value == 1);
    peer.got.clear();
  }
  // Sends a request that stays pending. Returns its number in the plugin.
  std::uint64_t pending(FrameKind kind, std::uint64_t number) {
    judge.Judge::status = BH_PENDING;
    const std::string head = to_bytes(PolicyText{});
    peer.send(kind, number, 0, head + "{}", head.size());
    peer.got.clear();
    CHECK(next().frame.kind == policy_waits);
    return judge.asked.back();
  }
  const Peer::Got &next() {
    REQUIRE(until([&] { return !peer.got.empty(); }));
    return peer.got.back();
  }
  const Peer::Got &exported() {
    peer.got.clear();
    peer.send(policy_export, 9);
    return next();
  }
};

}  // namespace

TEST_CASE("server stub: the state is exported, and imported with the number of the link") {
  StatefulWorld w;
  w.attach();  // the second link
  const Peer::Got exported = w.exported();
  CHECK(exported.frame.kind == policy_state);
  CHECK(exported.frame.exchange == 9);
  CHECK(exported.frame.code == BH_OK);
  StateText state;
  REQUIRE(from_bytes(exported.payload, &state));
  CHECK(state.schema == "test");
  CHECK(state.version == 7);
  CHECK(state.bytes == "state");
  const std::uint64_t number = w.pending(policy_decide, 5);

  StatefulWorld other;
  other.peer.send(policy_import, 3, 0, exported.payload);
  CHECK(other.next().frame.kind == policy_imported);
  CHECK(other.next().frame.exchange == 3);
  CHECK(other.next().frame.code == BH_OK);
  CHECK(other.judge.taken == "state");
  // A request has the same number in both processes.
  CHECK(other.pending(policy_decide, 5) == number);
}

TEST_CASE("server stub: a state that cannot be exported or imported is reported") {
  StatefulWorld w;
  const auto reason = [&](const Peer::Got &got) {
    CHECK(static_cast<bh_status>(got.frame.code) < 0);
    return got.payload;
  };
  SECTION("the plugin reports an error") {
    w.judge.JudgeState::status = BH_E_IO;
    CHECK(reason(w.exported()) == "no state today");
  }
  SECTION("it is too large") {
    w.judge.bytes.assign(BH_STATE_BYTES + 1, 'x');
    CHECK(reason(w.exported()) == "its state has 1048577 bytes; the limit is 1048576");
  }
  SECTION("it has no schema, or descriptors") {
    SECTION("no schema") {
      w.judge.schema.clear();
    }
    SECTION("a long schema") {
      w.judge.schema.assign(BH_STATE_SCHEMA_BYTES + 1, 'x');
    }
    SECTION("descriptors") {
      w.judge.fd_count = 1;
    }
    CHECK(reason(w.exported()) == "its state has no valid schema, or has descriptors");
  }
  SECTION("the plugin rejects it") {
    w.peer.send(policy_import, 3, 0, to_bytes(StateText{7, 1, "other", "state"}));
    CHECK(reason(w.next()) == "an unknown schema");
  }
  SECTION("it is malformed") {
    w.peer.send(policy_import, 3, 0, "noise");
    CHECK(reason(w.next()) == "the state is malformed");
  }
  // Verdicts are not held after a failure.
  const std::uint64_t number = w.pending(policy_decide, 5);
  w.peer.got.clear();
  w.server->decided(number, BH_VERDICT_BLOCK, {}, {});
  CHECK(w.next().frame.kind == policy_verdict);
}

TEST_CASE("server stub: the largest state is exported even if messages must be smaller") {
  StatefulWorld w;
  w.judge.bytes.assign(BH_STATE_BYTES, 'x');
  StateText state;
  REQUIRE(from_bytes(w.exported().payload, &state));
  CHECK(state.bytes.size() == BH_STATE_BYTES);
}

TEST_CASE("server stub: a policy without state neither exports nor imports one") {
  ServerStubWorld w;
  w.peer.send(policy_export, 9);
  CHECK(w.answer().frame.kind == policy_state);
  CHECK(static_cast<bh_status>(w.answer().frame.code) == BH_E_UNSUPPORTED);
  w.peer.got.clear();
  w.peer.send(policy_import, 9, 0, to_bytes(StateText{7, 1, "test", "state"}));
  CHECK(static_cast<bh_status>(w.answer().frame.code) == BH_E_UNSUPPORTED);
}

TEST_CASE("server stub: verdicts after the export are held, and then returned or sent") {
  StatefulWorld w;
  const std::uint64_t first = w.pending(policy_decide, 5), second = w.pending(policy_observe, 6),
                      item = w.pending(policy_filter, 7);
  CHECK(w.exported().frame.kind == policy_state);
  w.peer.got.clear();
  w.server->decided(first, BH_VERDICT_ALLOW, {}, {});
  w.server->decided(first, BH_VERDICT_BLOCK, {}, {});  // only the first verdict counts
  w.turn();
  CHECK(w.peer.got.empty());
  SECTION("the other process is used") {
    w.peer.send(policy_end, 0);
    REQUIRE(w.until([&] { return w.peer.got.size() == 2; }));
    for (const Peer::Got &got : w.peer.got) {
      CHECK(got.frame.kind == policy_returned);
      CHECK(got.frame.code == (got.frame.exchange == 5 ? policy_decide : policy_observe));
      CHECK(got.payload.substr(got.frame.value) == "{}");
    }
    w.server->decided(second, BH_VERDICT_ALLOW, {}, {});  // no longer awaited
    CHECK_FALSE(w.server->drained());
    w.server->filtered(item, true);
    REQUIRE(w.until([&] { return w.peer.got.size() == 3; }));
    CHECK(w.peer.got[2].frame.kind == FrameKind::policy_filtered);
    REQUIRE(w.until([&] { return w.server->drained(); }));
  }
  SECTION("this process continues") {
    w.peer.send(policy_continue, 0);
    REQUIRE(w.until([&] { return w.peer.got.size() == 1; }));
    CHECK(w.peer.got[0].frame.kind == policy_verdict);
    CHECK(w.peer.got[0].frame.exchange == 5);
    CHECK(w.peer.got[0].frame.code == BH_VERDICT_ALLOW);
    w.server->decided(second, BH_VERDICT_BLOCK, {}, {});
    REQUIRE(w.until([&] { return w.peer.got.size() == 2; }));
    CHECK(w.peer.got[1].frame.exchange == 6);
    // policy_end without another export returns nothing.
    w.peer.send(policy_end, 0);
    w.turn();
    CHECK(w.peer.got.size() == 2);
  }
  SECTION("a request is no longer needed") {
    w.peer.send(policy_forget, 5);
    w.peer.send(policy_end, 0);
    REQUIRE(w.until([&] { return w.peer.got.size() == 1; }));
    CHECK(w.peer.got[0].frame.exchange == 6);
  }
}

// A plugin's decision is posted. If the plugin has made it before the export, it is part of the
// state, so the request must not be returned.
TEST_CASE("server stub: a decision that was made before the export is sent before the state") {
  StatefulWorld w;
  const std::uint64_t number = w.pending(policy_decide, 5);
  w.peer.got.clear();
  // The test posts the decision like the host table does, in the iteration that reads the frame.
  w.peer.send(policy_export, 9);
  w.peer.channel->flush();
  w.reactor->post(&w, bh::callback(&w, [](StatefulWorld &world) {
    world.server->decided(world.judge.asked.back(), BH_VERDICT_ALLOW, {}, {});
  }));
  REQUIRE(w.until([&] { return w.peer.got.size() == 2; }));
  CHECK(number == w.judge.asked.back());
  CHECK(w.peer.got[0].frame.kind == policy_verdict);
  CHECK(w.peer.got[1].frame.kind == policy_state);
}
