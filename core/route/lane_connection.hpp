// The current connection of a lane to its server: opens it through the connector, sends messages on
// it, and closes it.
//
// Owned by the lane. Used on the reactor thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bulkhead/abi/ext/connector.h"
#include "route/lane.hpp"
#include "route/lane_wire.hpp"

namespace bulkhead {

class LaneConnection final : public LaneWire {
 public:
  // The lane.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Called with the response to one of the lane's own requests. If there is no response, `error`
    // is set and `scan` is null. `retry_after_ms` is the delay that the server requested, or 0.
    // LaneConnection itself calls this function only if a request cannot be sent.
    virtual void own_answer(Exchange &exchange, const mcp::Scan *scan, std::string_view message,
                            const Error *error, std::uint32_t retry_after_ms = 0) = 0;
  };

  LaneConnection(Lane &lane, LaneHost &host, Owner &owner)
      : lane_(lane), host_(host), owner_(owner) {}

  // Opens a connection. `handle` is the handle that the host has registered for it. If the function
  // fails, the handle is no longer registered, and `retry_after_ms` is the time that the connector
  // asks to wait, or 0.
  Result<void> open(bh_lane handle, std::uint64_t timeout_ms, std::uint32_t *retry_after_ms);
  // Notifies the connector of the server's revision.
  void opened(std::string_view revision);
  // Closes the connection, which must be open. The host is notified.
  void close();
  // Returns 0 if there is no connection.
  bh_lane handle() const noexcept { return handle_; }

  // Sends the request of the exchange. Returns false if the request was not sent; in this case, the
  // exchange has ended. If the function returns true, the exchange may have ended as well, because
  // the response may arrive during the call. Requires a connection.
  bool send_request(Exchange &exchange, const bh_str *parts, std::uint32_t count,
                    std::uint32_t flags, std::span<const bh_header> headers = {});
  // Sends a notification or a response. It is dropped if there is no connection.
  void send(std::uint32_t kind, const bh_str *parts, std::uint32_t count);
  // See Lane::retract(), for an exchange that was sent, and Lane::abandon().
  void retract(std::uint64_t exchange, std::string_view reason, const mcp::Scan *reason_scan);
  void abandon(std::uint64_t exchange);

  // ---- LaneWire ----
  Exchange *own_exchange(Purpose purpose, mcp::Method method, std::uint64_t timeout_ms) override;
  void send_own(Exchange &exchange, std::string_view params, std::uint32_t flags,
                std::span<const bh_header> headers) override;
  std::string about(std::string_view text) const override;

 private:
  Lane &lane_;
  LaneHost &host_;
  Owner &owner_;
  bh_lane handle_ = 0;
  void *wire_ = nullptr;  // the connector's pointer for this connection
};

}  // namespace bulkhead
