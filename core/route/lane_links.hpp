// Implements LaneHost: connects lanes and upstreams to the other parts of the router.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/asks.hpp"
#include "route/counters.hpp"
#include "route/deadlines.hpp"
#include "route/lane_host.hpp"
#include "route/pin_watch.hpp"
#include "route/subscriptions.hpp"
#include "route/tools_edge.hpp"
#include "route/views.hpp"
#include "route/wire_edge.hpp"

namespace bulkhead {

class Calls;

class LaneLinks final : public LaneHost {
 public:
  struct Needs {
    const Limits &limits;
    Reactor &reactor;
    RouterCounters &counters;
    ExchangeTable &exchanges;
    Deadlines &deadlines;
    Calls &calls;
    CallAnswers &answers;
    CallEnds &ends;
    WireEdge &wires;
    ToolsEdge &tools;
    Asks &asks;
    Subscriptions &subscriptions;
    Views &views;
    PinWatch &pins;
    std::function<void(std::int32_t level, std::string_view text)> log;
    // Masks the gateway's own credentials in the text. The function may be empty.
    std::function<std::optional<std::string>(std::string_view text)> mask;
    std::function<void(const ListNews &)> on_list;  // may be empty
  };
  explicit LaneLinks(Needs needs) : needs_(std::move(needs)) {}

  // Called when a message from or to this server was dropped because it could not be rewritten.
  void message_lost(const Lane &lane, mcp::Method method);
  // Called when one of the lane's own requests (handshake, list) has timed out.
  void timed_out(Exchange &exchange);

  // ---- LaneHost ----
  const Limits &limits() const noexcept override { return needs_.limits; }
  Reactor &reactor() noexcept override { return needs_.reactor; }
  void log(std::int32_t level, std::string_view text) const override { needs_.log(level, text); }
  std::optional<std::string> without_credentials(std::string_view text) const override {
    return needs_.mask ? needs_.mask(text) : std::nullopt;
  }
  bh_lane register_wire(WireLane *lane) override { return needs_.wires.add(lane); }
  void detach_wire(bh_lane lane) override { needs_.wires.detach(lane); }
  void forget_wire(bh_lane lane) override { needs_.wires.forget(lane); }
  ExchangeTable &exchanges() noexcept override { return needs_.exchanges; }
  void arm(Exchange &exchange, std::uint64_t timeout_ms) override {
    needs_.deadlines.arm(exchange, timeout_ms);
  }
  void drop(Exchange &exchange) override { needs_.ends.drop(exchange); }
  void fail_call(Call &call, std::int32_t error_code, std::string_view text,
                 std::uint32_t outcome) override {
    needs_.answers.fail_by_server(call, error_code, text, outcome);
  }
  void answer_call(Call &call, const Message &answer) override {
    needs_.answers.answered(call, answer);
  }
  bool may_be_sent(Call &call) override;
  void send_again(Call &call) override;
  void tools_refused(bh_call call, const Error &error) override {
    needs_.tools.refused(call, error);
  }
  void expect_completed(bh_call call) override { needs_.tools.expect_completed(call); }
  void lane_changed(Lane &lane) override { needs_.views.lane_changed(lane); }
  void items_changed(Lane &lane) override;
  void lane_ready(Lane &lane) override;
  void lane_lost(Lane &lane) override;
  void tools_listed(const Lane &lane) override { needs_.pins.listed(lane); }
  void list_learned(const ListNews &news) const override {
    if (needs_.on_list) needs_.on_list(news);
  }
  void lane_ends(Lane &lane) override { needs_.subscriptions.forget_lane(lane); }

 private:
  const Needs needs_;
};

}  // namespace bulkhead
