// Runs a gateway inside the test with a policy whose verdicts the test sets, and a client that can
// repeat its handshake.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "embed/fake_policy.hpp"
#include "embed/fake_world.hpp"
#include "embed/host_impl.hpp"
#include "embed/judged_world.hpp"
#include "route/clients.hpp"

namespace bulkhead {

inline bh_status later(const FakeJudge::Asked &, bh_verdict *) {
  return BH_PENDING;
}

struct PolicyWorld : JudgedWorld {
  explicit PolicyWorld(std::uint32_t needs) : JudgedWorld(needs) { judge.judge = later; }
  bool sent_call() { return up.last("a").find("tools/call") != std::string::npos; }
  void answer(const std::string &result) {
    up.send("a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(up.last("a")) +
                     R"(,"result":)" + result + "}");
  }
  // Waits until a call has been recorded, and returns the latest such record.
  const FakeJudge::Kept &record() {
    const FakeJudge::Kept *found = nullptr;
    REQUIRE(turn_until([&] {
      for (const FakeJudge::Kept &one : judge.records) {
        if (one.method == "tools/call") found = &one;
      }
      return found != nullptr;
    }));
    return *found;
  }
};

class RawClient final : private ClientEnd {
 public:
  explicit RawClient(Host &host)
      : clients_(static_cast<HostImpl &>(host).route().clients.sessions) {
    bh_peer peer{};
    peer.size = sizeof peer;
    peer.flags = BH_PEER_HANDSHAKE_OPTIONAL;
    peer.transport = bh::str("test");
    REQUIRE(clients_.open(*this, peer, &session_, nullptr) == BH_OK);
  }
  ~RawClient() override {
    if (session_ != 0) clients_.close(session_, BH_SESSION_GONE);
  }
  void deliver(const std::string &message) {
    bh_delivery delivery{};
    delivery.size = sizeof delivery;
    clients_.deliver(session_, 0, message, &delivery);
  }
  void initialize(const std::string &capabilities) {
    deliver(
        R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",)"
        R"("capabilities":)" +
        capabilities + "}}");
  }
  void call_x() {
    deliver(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__x"}})");
  }
  bool has(std::string_view text) const { return got_.find(text) != std::string::npos; }

 private:
  void send(const bh_outgoing &message) override {
    for (std::uint32_t i = 0; i < message.part_count; ++i) got_ += bh::view(message.parts[i]);
  }
  void session_ended(bh_session, std::string_view) override { session_ = 0; }

  Clients &clients_;
  bh_session session_ = 0;
  std::string got_;
};

}  // namespace bulkhead
