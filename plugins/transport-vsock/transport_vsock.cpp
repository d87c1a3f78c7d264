#include "transport-vsock/transport_vsock.hpp"

namespace transport_vsock {

TransportVsock::TransportVsock(const bh_host *host)
    : host_(host), up_(host_.ext<bh_host_transport>(BH_EXT_HOST_TRANSPORT)) {}

bh_status TransportVsock::configure(bh_str json, bh_error *error) {
  const bool complete = up_ != nullptr && BH_HAS(bh_host_transport, up_, set_process_name) &&
                        up_->limits != nullptr && host_.has_reactor();
  if (!complete) {
    return bh::fail(error, BH_E_UNSUPPORTED,
                    "transport-vsock requires a host with " BH_EXT_HOST_TRANSPORT
                    " (set_process_name), " BH_EXT_HOST_EXECUTOR " and " BH_EXT_HOST_FD);
  }
  config_ = {};
  const bh_status status = parse_config(bh::view(json), &config_, error);
  if (config_.write_timeout_ms == 0) config_.write_timeout_ms = up_->limits->write_stall_ms;
  return status;
}

bh_status TransportVsock::listen(bh_error *error) {
  running_ = std::make_unique<Endpoint>(host_, up_, config_);
  return running_->listen(error);
}

}  // namespace transport_vsock
