// Accepts clients in virtual machines, over AF_VSOCK or a hypervisor's Unix sockets. docs/guest.md
// describes the protocol, and config.hpp describes the configuration.
//
// Limits: max_connections; sniff_timeout_ms for protocol detection; limits.write_queue_bytes and
// write_timeout_ms for guests that do not read.
//
// The plugin delivers messages and closes sessions only in its own reactor events and in stop(),
// never inside send(). Runs on the reactor thread, unless bh_transport specifies another thread for
// a function.
#pragma once

#include <bulkhead/cpp/tables.hpp>

#include <memory>
#include <string>

#include "transport-vsock/config.hpp"
#include "transport-vsock/endpoint.hpp"

namespace transport_vsock {

class TransportVsock {
 public:
  static constexpr bh::Info info{.id = "transport-vsock",
                                 .name = "Clients in virtual machines",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = config_schema,
                                 .provides = {BH_EXT_TRANSPORT}};

  explicit TransportVsock(const bh_host *host);

  bh_status configure(bh_str json, bh_error *error);
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept { running_.reset(); }
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TRANSPORT) ? bh::transport_table<TransportVsock>() : nullptr;
  }

  bh_status listen(bh_error *error);
  void stop_accepting() noexcept {
    if (running_) running_->stop_accepting();
  }
  bh_status send(const bh_outgoing &message) {
    return running_ ? running_->send(message) : bh_status{BH_STALE};
  }
  void session_ended(bh_session session, bh_str) {
    if (running_) running_->session_ended(session);
  }
  bh_str endpoint() noexcept {
    if (!config_.local_token.empty()) return {};  // clients do not configure this address
    return bh::str(config_.listen.empty() ? config_.dial : config_.listen);
  }

 private:
  bh::Host host_;
  const bh_host_transport *const up_;
  Config config_;
  std::unique_ptr<Endpoint> running_;  // set between listen() and stop()
};

}  // namespace transport_vsock
