// Connects to an MCP endpoint outside the virtual machine, over AF_VSOCK or a Unix socket. Each
// lane has one connection, on which messages are sent in frames (plugins/mcp-frame).
//
// Messages are queued until the connection is established. If the host provides bh.host.wire/1, the
// connector reports when a connection is established, reports back-pressure from the endpoint,
// supports half-close, and stops reading on request.
#pragma once

#include <bulkhead/cpp/tables.hpp>

#include <memory>
#include <vector>

#include "connector-vsock/lane.hpp"

namespace connector_vsock {

class ConnectorVsock final : public Shared {
 public:
  static constexpr bh::Info info{.id = "connector-vsock",
                                 .name = "Endpoint over vsock",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = {},
                                 .provides = {BH_EXT_CONNECTOR, BH_EXT_WIRE}};

  explicit ConnectorVsock(const bh_host *raw);

  bh_status configure(bh_str json, bh_error *error);
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept;
  const void *get_ext(const char *id) noexcept;

  bh_status lane_open(bh_lane lane, const bh_lane_info &lane_info, void **out, bh_error *error);
  bh_status lane_send(void *lane, const bh_lane_message &message, bh_error *error);
  void lane_ready(void *, bh_str) noexcept {}
  void lane_abandon(void *lane, std::uint64_t exchange) noexcept;
  void lane_close(void *lane);
  void lane_finish(void *lane);
  void lane_hold(void *lane, bool hold);

 private:
  void flush_later(Lane &lane) override;
  void finished(Lane &lane) override;
  void at_turn_end();
  void defer_turn_end();
  std::unique_ptr<Lane> take(const Lane &lane);

  bh::Host host_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Lane *> to_flush_, flushing_, to_finish_;
  bool deferred_ = false;
};

}  // namespace connector_vsock
