// The interface through which the parts of a lane behind a connector send the lane's own requests.
//
// Implemented by LaneConnection. Used on the reactor thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bulkhead/abi/core.h"
#include "route/exchange.hpp"

namespace bulkhead {

class LaneWire {
 public:
  virtual ~LaneWire() = default;

  // Opens an exchange that belongs to the lane. If `timeout_ms` is 0, it has no time-out. Returns
  // null if no exchange is available.
  virtual Exchange *own_exchange(Purpose purpose, mcp::Method method, std::uint64_t timeout_ms) = 0;
  // Sends the request of such an exchange. `params` is a JSON object, or empty. The exchange may
  // have ended when this function returns.
  virtual void send_own(Exchange &exchange, std::string_view params, std::uint32_t flags,
                        std::span<const bh_header> headers) = 0;
  // Prefixes the text with the server's name, unless the connector has already done so.
  virtual std::string about(std::string_view text) const = 0;
};

}  // namespace bulkhead
