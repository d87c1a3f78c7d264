// Scans messages from servers behind connectors and dispatches them: responses to their calls,
// requests to Asks, and notifications to Notifications and Subscriptions. Also maps connector
// handles to lanes.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/lane_failure.hpp"
#include "base/result.hpp"
#include "base/slots.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "profile/profile.hpp"
#include "route/asks.hpp"
#include "route/call_answers.hpp"
#include "route/counters.hpp"
#include "route/exchange.hpp"
#include "route/message.hpp"
#include "route/notifications.hpp"
#include "route/subscriptions.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

class WireEdge {
 public:
  struct Needs {
    const Profile &profile;
    RouterCounters &counters;
    ExchangeTable &exchanges;
    CallAnswers &answers;
    Asks &asks;
    Notifications &notifications;
    Subscriptions &subscriptions;
    std::function<void(std::int32_t level, std::string_view text)> log;
    std::function<void()> on_idle;  // called when a connection has been released
  };
  explicit WireEdge(Needs needs) : needs_(std::move(needs)) {}

  // ---- connections ----
  bh_lane add(WireLane *lane) { return wires_.insert(lane); }
  // Called when the connection is being closed. Its handle stays valid until closed().
  void detach(bh_lane lane);
  // Removes a connection that could not be opened.
  void forget(bh_lane lane) { wires_.erase(lane); }
  // Called when the connector has released the connection, which it must do after every close.
  void closed(bh_lane lane);
  std::size_t closing() const noexcept { return closing_; }
  // Returns null if the handle is unknown or its connection is being closed.
  WireLane *find(bh_lane lane) noexcept;

  // ---- from connectors ----
  // `hint` is the exchange of the stream on which the message arrived, or 0 if unknown.
  void message(bh_lane lane, std::uint64_t hint, std::string_view message);
  void exchange_failed(bh_lane lane, std::uint64_t exchange, const LaneFailure &failure);
  void down(bh_lane lane, const LaneFailure &failure);

 private:
  struct BatchInHand;

  void take(WireLane &lane, std::uint64_t hint, std::string_view message, mcp::Scan *scan);
  void take_batch(bh_lane lane, std::uint64_t hint, std::string_view message);
  bool take_element(BatchInHand &batch, std::string_view element);
  std::string refuse(bh_lane lane, std::uint64_t hint, std::string_view message,
                     const mcp::ScanError &error);
  void answer(WireLane &lane, std::uint64_t hint, const Message &message);
  void notification(WireLane &lane, std::uint64_t hint, const Message &message);

  const Needs needs_;
  Slots<WireLane *> wires_;
  std::size_t closing_ = 0;
};

}  // namespace bulkhead
