// Hosts a pipe: one transport, one connector, and a Route between them. Both plugins are linked
// into the program. There is no profile, policy or catalogue. The relay in a guest is a PipeHost.
//
// Single-threaded, except request_stop().
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "bulkhead/abi/ext/draft/flow.h"
#include "bulkhead/abi/ext/draft/wire.h"
#include "bulkhead/abi/ext/transport.h"
#include "host_tables/extensions.hpp"
#include "host_tables/table_set.hpp"
#include "pipe/linked_plugin.hpp"
#include "pipe/route.hpp"

namespace bulkhead::pipe {

struct Options {
  bh_plugin_entry_fn transport = nullptr, connector = nullptr;
  std::string transport_config = "{}", connector_config = "{}";
  std::string endpoint;  // the endpoint's name in log messages
  // Returns the endpoint's definition for the connector, as a JSON object. Called for each
  // connection attempt. The argument is the client's process name, which the transport reports.
  std::function<Result<std::string>(std::string_view process_name)> definition;
  RouteLimits limits;
  std::uint64_t message_bytes = 16u << 20;  // limit for one message, in either direction
  std::uint64_t queue_bytes = 8u << 20;     // limit for queued output, per direction
  LinkedPlugin::Log log;
};

class PipeHost final : private Ends {
 public:
  static Result<std::unique_ptr<PipeHost>> create(Options options);
  ~PipeHost();
  PipeHost(const PipeHost &) = delete;
  PipeHost &operator=(const PipeHost &) = delete;

  // Runs until request_stop() is called, the client has disconnected, the client's input has ended
  // and all responses have been written, or the first connection has failed for good. Returns an
  // error in the last case, or if output for the client was lost.
  Result<void> run();
  // May be called on any thread and in signal handlers.
  void request_stop() noexcept;

 private:
  // Receives calls from both plugins.
  struct Receiver;
  using ConnectorTables = host_tables::TableSet<host_tables::ConnectorTable<Receiver>,
                                                host_tables::WireTable<Receiver>>;
  using TransportTables = host_tables::TableSet<host_tables::TransportTable<Receiver>,
                                                host_tables::FlowTable<Receiver>>;
  explicit PipeHost(Options options);
  Result<void> start();

  bh_status open_session(const bh_peer &peer, bh_session *out);
  void deliver(std::string_view text, bh_delivery *out);
  void session_close(std::uint32_t how);
  void output_full(bool full);
  bool output_waits() const noexcept { return client_full_ && session_open_; }

  void to_client(std::string_view message) override;
  Result<void> open_lane(bh_lane lane) override;
  Result<void> send(std::uint32_t kind, std::uint64_t exchange, std::string_view text) override;
  void finish_lane() override;
  void close_lane() override;
  void hold_lane(bool hold) override;
  void hold_client(bool hold) override;
  void log(std::int32_t level, std::string_view text) override { options_.log(level, text); }
  void done(std::string_view failure) override;

  const Options options_;
  const bh_limits plugin_limits_;
  const ConnectorTables connector_tables_;
  const TransportTables transport_tables_;
  std::unique_ptr<Reactor> reactor_;
  std::unique_ptr<LinkedPlugin> transport_, connector_;
  const bh_transport *transport_table_ = nullptr;
  const bh_flow *flow_ = nullptr;
  const bh_connector *connector_table_ = nullptr;
  const bh_wire *wire_ = nullptr;
  std::unique_ptr<Route> route_;
  std::string process_name_;  // the client's process
  std::string definition_;    // of the current lane
  void *lane_ = nullptr;      // the connector's handle for the open lane
  bool session_open_ = false, client_full_ = false;
  bool done_ = false;  // the route has ended
  std::optional<Error> failure_;
  std::atomic<bool> stopping_{false};
};

}  // namespace bulkhead::pipe
