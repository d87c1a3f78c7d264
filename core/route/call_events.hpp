// Events that arrive for a call while a step of any call is running. Connectors, policies, clients
// and telemetry plugins may call back from inside any function that the gateway calls. Such events
// are queued on their call and handled after the step; see CallLoop.
//
// Limit: one event of each kind, CallEvents::max in total. A second event of the same kind is
// dropped, because the first one already ends the wait.
//
// The queue is part of the call. The data of the events is in EventDetails. Each slot of the call
// table creates its EventDetails when the first event with data is queued, and keeps them for later
// calls, so nothing is allocated in steady state.
//
// Runs on the reactor thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "bulkhead/abi/ext/tools.h"
#include "mcp/scan.hpp"
#include "route/approval.hpp"
#include "route/gate.hpp"
#include "route/message.hpp"

namespace bulkhead {

enum class CallEvent : std::uint8_t {
  begun,      // the client's request
  decided,    // the policy's decision about the call or its answer
  checked,    // the pool's result: whether there are duplicate members
  approved,   // the human approver's answer
  withdrawn,  // the approval question can no longer be answered
  committed,  // the intent record is committed
  input,      // the call's round of input requests has ended; see CallInput::settled()
  again,      // the call has left its lane's queue, and has to be evaluated again
  answered,   // the server's answer
  failed,     // the server, its connection or its lane has failed
  timed_out,  // the deadline of the stage has passed
  cancelled,  // by the client
  gone,       // the client is gone
  ended,      // by the gateway: see CallEnds::end_drained(), end_unanswered(), end_all()
  count       // not an event
};

// A failed call, with the error message for its client.
struct CallFailure {
  std::int32_t error_code = 0;
  std::uint32_t outcome = 0;  // BH_OUTCOME_...
  std::string text;
  bool of_server = false;  // `failed` only: a policy that reads results evaluates the text
  std::uint32_t cancel = BH_CANCEL_OTHER;  // `ended` only: the reason for the server
};

// The data of queued events. Valid until another event of the same kind is queued or clear() is
// called.
struct EventDetails {
  Gate::Decision decision;  // decided
  bool duplicates = false;  // checked
  bool allowed = false;     // approved
  ApprovalSurface surface = ApprovalSurface::none;
  ApprovalScope scope;
  std::string_view why;  // withdrawn: static text
  std::string answer;    // answered
  mcp::Scan answer_scan;
  CallFailure failure;         // failed
  CallFailure end;             // ended
  ParkedMessage cancellation;  // cancelled: the client's notification
};

class CallEvents {
 public:
  static constexpr std::size_t max = static_cast<std::size_t>(CallEvent::count);

  bool empty() const noexcept { return size_ == 0; }
  bool has(CallEvent event) const noexcept { return (kinds_ & bit(event)) != 0; }
  // Returns true if one of the queued events ends a call that is waiting to be sent.
  bool ends_call() const noexcept {
    return (kinds_ & (bit(CallEvent::cancelled) | bit(CallEvent::gone) | bit(CallEvent::ended) |
                      bit(CallEvent::failed) | bit(CallEvent::timed_out))) != 0;
  }
  // Returns false and drops the event if an event of this kind is already queued.
  bool push(CallEvent event) noexcept {
    if (has(event)) return false;
    kinds_ = static_cast<std::uint16_t>(kinds_ | bit(event));
    order_[size_++] = event;
    return true;
  }
  // Requires !empty().
  CallEvent pop() noexcept {
    const CallEvent event = order_.front();
    kinds_ = static_cast<std::uint16_t>(kinds_ & ~bit(event));
    std::copy(order_.begin() + 1, order_.begin() + size_--, order_.begin());
    return event;
  }
  EventDetails &details() {
    if (details_ == nullptr) details_ = std::make_unique<EventDetails>();
    return *details_;
  }
  // Removes all events and releases their larger data. The buffer of the response is kept if its
  // capacity is at most max_kept bytes.
  void clear() noexcept {
    size_ = 0;
    kinds_ = 0;
    if (details_ != nullptr) clear_details();
  }

 private:
  static constexpr std::size_t max_kept = 16'384;
  static constexpr unsigned bit(CallEvent event) noexcept {
    return 1u << static_cast<unsigned>(event);
  }
  void clear_details() noexcept;

  std::array<CallEvent, max> order_{};
  std::uint8_t size_ = 0;
  std::uint16_t kinds_ = 0;
  std::unique_ptr<EventDetails> details_;
};

}  // namespace bulkhead
