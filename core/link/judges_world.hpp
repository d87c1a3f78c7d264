// The world of the tests of policy and telemetry links. The test acts as the opposite stub.
#pragma once

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

namespace bulkhead::link {

inline bh_limits small_limits() {
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
  void state_dropped(const std::string &) override { said.push_back({"dropped", {}}); }
};

inline bh_policy_request request_of(std::uint64_t number) {
  bh_policy_request request{};
  request.size = sizeof request;
  request.exchange = number;
  request.server = bh::str("s");
  request.name = bh::str("n");
  request.arguments = bh::str(R"({"a":1})");
  return request;
}

}  // namespace bulkhead::link
