// Runs upstream MCP servers as child processes of the gateway.
#pragma once

#include <bulkhead/cpp/tables.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connector-stdio/lane.hpp"

namespace connector_stdio {

class ConnectorStdio final : public Shared {
 public:
  static constexpr bh::Info info{.id = "connector-stdio",
                                 .name = "Upstream servers as child processes",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = {},
                                 .provides = {BH_EXT_CONNECTOR}};
  // stop() waits at most this long for killed children, because a child may be in an
  // uninterruptible system call.
  static constexpr std::uint64_t stop_wait_ms = 2'000;

  explicit ConnectorStdio(const bh_host *raw);

  bh_status configure(bh_str json, bh_error *error);
  bh_status start(bh_error *error);
  void stop() noexcept;
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_CONNECTOR) ? bh::connector_table<ConnectorStdio>() : nullptr;
  }

  bh_status lane_open(bh_lane lane, const bh_lane_info &lane_info, void **out, bh_error *error);
  bh_status lane_send(void *lane, const bh_lane_message &message, bh_error *error);
  void lane_ready(void *, bh_str) noexcept {}
  void lane_abandon(void *, std::uint64_t) noexcept {}
  void lane_close(void *lane);

 private:
  void flush_later(Lane &lane) override;
  void finished(Lane &lane) override;
  std::shared_ptr<RotatedFile> stderr_file(const std::string &path, std::uint64_t bound) override;
  void count_noise() override;
  void at_turn_end();
  void defer_turn_end();
  std::unique_ptr<Lane> take(Lane &lane);

  bh::Host host_;
  const bh_host_metrics *metrics_;
  bh_metric noise_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::vector<Lane *> to_flush_, flushing_, to_finish_;
  bool deferred_ = false;
  bool pipe_signal_blocked_ = false;
  std::map<std::string, std::weak_ptr<RotatedFile>> stderr_files_;
};

}  // namespace connector_stdio
