// The interface through which lanes and upstreams use the other parts of the router.
//
// Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/abi/ext/tools.h"
#include "mcp/scan.hpp"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/call.hpp"
#include "route/exchange.hpp"
#include "route/message.hpp"

namespace bulkhead {

class Lane;
class WireLane;
struct ListNews;

class LaneHost {
 public:
  virtual ~LaneHost() = default;

  virtual const Limits &limits() const noexcept = 0;
  virtual Reactor &reactor() noexcept = 0;
  virtual void log(std::int32_t level, std::string_view text) const = 0;
  // Masks the gateway's own credentials in the text. In a process without credentials, returns
  // nullopt.
  virtual std::optional<std::string> without_credentials(std::string_view text) const = 0;

  // ---- connections, identified by the handles that connectors use ----
  virtual bh_lane register_wire(WireLane *lane) = 0;
  // Called when the connection is closing. Its handle stays valid until the connector has closed
  // it.
  virtual void detach_wire(bh_lane lane) = 0;
  // Called if the connection was never opened.
  virtual void forget_wire(bh_lane lane) = 0;

  // ---- exchanges ----
  virtual ExchangeTable &exchanges() noexcept = 0;
  // These two functions are used for exchanges that belong to a lane rather than to a call.
  virtual void arm(Exchange &exchange, std::uint64_t timeout_ms) = 0;
  virtual void drop(Exchange &exchange) = 0;
  // Fails the call. A policy that reads results evaluates the text first. When this function
  // returns, the call has left its lane.
  virtual void fail_call(Call &call, std::int32_t error_code, std::string_view text,
                         std::uint32_t outcome) = 0;
  // Answers the call with a result that the lane has composed, as if the server had sent it.
  virtual void answer_call(Call &call, const Message &answer) = 0;
  // Called when a queued call can be sent. Returns false if the lane must not send it; see
  // Calls::may_be_sent().
  virtual bool may_be_sent(Call &call) = 0;
  // Evaluates a call again and sends it. The call must be parked in the lane's queue, and the
  // server must not have run it. When this function returns, the call has left the lane.
  virtual void send_again(Call &call) = 0;
  // Called when a tools plugin has refused a call or has ended. No result follows.
  virtual void tools_refused(bh_call call, const Error &error) = 0;
  // Called when a tools plugin has returned BH_OK for a call. The plugin must have called
  // complete() before it returned. If it has not, the call fails in a later iteration of the event
  // loop.
  virtual void expect_completed(bh_call call) = 0;

  // ---- events of a lane ----
  virtual void lane_changed(Lane &lane) = 0;   // its state has changed
  virtual void items_changed(Lane &lane) = 0;  // its lists have changed
  virtual void lane_ready(Lane &lane) = 0;
  virtual void lane_lost(Lane &lane) = 0;  // connection ended; the server's open requests are void
  virtual void tools_listed(const Lane &lane) = 0;
  virtual void list_learned(const ListNews &news) const = 0;
  virtual void lane_ends(Lane &lane) = 0;
};

}  // namespace bulkhead
