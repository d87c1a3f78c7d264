// The world of the tests of the client stub of a policy link.
#pragma once

#include <optional>
#include <string>

#include "link/judges_world.hpp"

namespace bulkhead::link {

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
  // Connects to the next process, and waits until it has reported its needs.
  void connect_next(Peer &next, std::uint32_t needs, bool has_state = false) {
    std::optional<Result<void>> connected;
    client.connect_next(next.open(*reactor), [&](const Result<void> &done) { connected = done; });
    next.send(policy_needs, 0, needs, {}, has_state ? 1 : 0);
    REQUIRE(until([&] { return connected.has_value(); }));
    REQUIRE(connected->has_value());
  }
  // Replaces the current process by one that has no state.
  void use_next(Peer &next, std::uint32_t needs) {
    connect_next(next, needs);
    bool moved = false;
    client.move_state([&](const Result<void> &done) { moved = done.has_value(); });
    REQUIRE(moved);
    client.use_next();
  }
  bh_status filter(std::uint64_t number) {
    const bh_policy_request request = request_of(number);
    return table.filter(&client, &request, nullptr);
  }
};

}  // namespace bulkhead::link
