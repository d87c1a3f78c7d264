// Tests that policies are replaced together.
#include "embed/policy_exchange.hpp"

#include <array>
#include <optional>

#include "link/client_stub_world.hpp"

using namespace bulkhead;
using namespace bulkhead::link;

namespace {

// Two policies with state. The test acts as their former and their next processes.
struct ExchangeWorld : Loop {
  struct Policy {
    Policy(Reactor &reactor, const bh_limits &limits) : stub(reactor, "policy", limits, heard) {}
    Heard heard;
    Peer former, next;
    PolicyClientStub stub;

    std::uint64_t exports() const { return count(former, policy_export); }
    static std::uint64_t count(const Peer &peer, std::uint16_t kind) {
      std::uint64_t n = 0;
      for (const Peer::Got &got : peer.got) n += got.frame.kind == kind ? 1 : 0;
      return n;
    }
    void export_state() {
      former.send(policy_state, former.got.back().frame.exchange, BH_OK,
                  to_bytes(StateText{1, 1, "test", "state"}));
    }
    void import_state(bh_status status = BH_OK) {
      next.send(policy_imported, next.got.back().frame.exchange, static_cast<std::uint32_t>(status),
                "no");
    }
    bool decide(std::uint64_t number) {
      const bh_policy_request request = request_of(number);
      bh_verdict verdict{};
      return PolicyClientStub::table().decide(&stub, &request, &verdict, nullptr) == BH_PENDING;
    }
  };
  bh_limits limits = small_limits();
  Policy one{*reactor, limits}, two{*reactor, limits};
  PolicyExchange exchange{*reactor};
  std::optional<Result<void>> prepared;

  ExchangeWorld() {
    for (Policy *policy : {&one, &two}) {
      policy->stub.set_state_time(60'000);
      policy->stub.attach(policy->former.open(*reactor));
      policy->former.send(policy_needs, 0, BH_POLICY_DECIDES, {}, 1);
      REQUIRE(until([&] { return !policy->heard.said.empty(); }));
      policy->heard.said.clear();
    }
  }
  void prepare() {
    std::vector<PolicyExchange::Next> next;
    for (Policy *policy : {&one, &two}) {
      next.push_back({&policy->stub, policy->next.open(*reactor)});
    }
    exchange.prepare(std::move(next), [this](const Result<void> &done) { prepared = done; });
  }
  void connect(Policy &policy) { policy.next.send(policy_needs, 0, BH_POLICY_DECIDES, {}, 1); }
  void set_time(std::uint64_t ms) {
    for (Policy *policy : {&one, &two}) policy->stub.set_state_time(ms);
  }
  bool finished() {
    return until([&] { return prepared.has_value(); });
  }
};

}  // namespace

TEST_CASE("no policy exports its state before all next processes are connected") {
  ExchangeWorld w;
  w.prepare();
  CHECK(w.exchange.in_progress());
  w.connect(w.one);
  w.turn();
  CHECK(w.one.exports() == 0);
  REQUIRE(w.one.decide(1));  // not queued
  REQUIRE(w.until([&] { return w.one.former.got.size() == 1; }));
  w.connect(w.two);
  REQUIRE(w.until([&] { return w.one.exports() == 1 && w.two.exports() == 1; }));
  for (ExchangeWorld::Policy *policy : {&w.one, &w.two}) {
    policy->export_state();
    REQUIRE(w.until([&] { return !policy->next.got.empty(); }));
    policy->import_state();
  }
  REQUIRE(w.finished());
  REQUIRE(w.prepared->has_value());
  REQUIRE(w.two.decide(2));
  w.exchange.use();
  CHECK_FALSE(w.exchange.in_progress());
  REQUIRE(w.until([&] { return w.two.next.got.back().frame.kind == policy_decide; }));
  REQUIRE(w.until([&] { return w.one.former.got.back().frame.kind == policy_end; }));
}

TEST_CASE("if one state is rejected, all former processes continue") {
  ExchangeWorld w;
  w.prepare();
  w.connect(w.one);
  w.connect(w.two);
  REQUIRE(w.until([&] { return w.one.exports() == 1 && w.two.exports() == 1; }));
  REQUIRE(w.one.decide(1));
  for (ExchangeWorld::Policy *policy : {&w.one, &w.two}) {
    policy->export_state();
    REQUIRE(w.until([&] { return !policy->next.got.empty(); }));
    policy->import_state(policy == &w.one ? BH_OK : BH_E_INVALID);
  }
  REQUIRE(w.finished());
  REQUIRE_FALSE(w.prepared->has_value());
  CHECK(w.prepared->error().text.find("rejects the state: no") != std::string::npos);
  CHECK_FALSE(w.exchange.in_progress());
  for (ExchangeWorld::Policy *policy : {&w.one, &w.two}) {
    REQUIRE(w.until([&] { return policy->count(policy->former, policy_continue) == 1; }));
    REQUIRE(w.until([&] { return policy->next.ended; }));
  }
  REQUIRE(w.until([&] { return w.one.count(w.one.former, policy_decide) == 1; }));
}

TEST_CASE("a state that is not moved in time is requested again, a limited number of times") {
  ExchangeWorld w;
  w.set_time(1);
  w.prepare();
  w.connect(w.one);
  w.connect(w.two);
  SECTION("it succeeds") {
    REQUIRE(w.until([&] { return w.one.count(w.one.former, policy_continue) == 1; }));
    w.set_time(60'000);
    REQUIRE(w.until([&] { return w.one.exports() >= 2 && w.two.exports() >= 2; }));
    for (ExchangeWorld::Policy *policy : {&w.one, &w.two}) {
      policy->export_state();
      REQUIRE(w.until([&] { return !policy->next.got.empty(); }));
      policy->import_state();
    }
    REQUIRE(w.finished());
    CHECK(w.prepared->has_value());
  }
  SECTION("it never succeeds") {
    REQUIRE(w.finished());
    REQUIRE_FALSE(w.prepared->has_value());
    CHECK(w.prepared->error().code == BH_E_TIMEOUT);
    CHECK(w.two.exports() == PolicyExchange::max_attempts);
  }
}

TEST_CASE("a second exchange is rejected while one is in progress") {
  ExchangeWorld w;
  w.prepare();
  std::optional<Result<void>> second;
  w.exchange.prepare({}, [&](const Result<void> &done) { second = done; });
  REQUIRE(second.has_value());
  CHECK(second->error().code == BH_E_LIMIT);
  CHECK_FALSE(w.prepared.has_value());
}
