// Serves GET /metrics, and no other path, over TCP if gateway.metrics_listen is set, for a
// Prometheus server that cannot access the service socket. There is no authentication.
#pragma once

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "service/control_server.hpp"
#include "service/service_protocol.hpp"

namespace bulkhead::program {

// Returns an error if the address is invalid, in use, or not an address of this machine.
Result<OwnedFd> open_metrics_listener(const std::string &address);

// `value` is the result of ServiceRequest::status.
ControlAnswer metrics_answer(const std::string &value);

class MetricsServer {
 public:
  // The limits and time-outs of ControlServer apply.
  MetricsServer(Reactor &reactor, OwnedFd listener, AskService ask);

 private:
  void handle(const ControlRequest &request, ControlServer::Reply reply) const;

  const OwnedFd listener_;
  const bool for_this_machine_;  // the listener is on loopback
  const AskService ask_;
  ControlServer server_;
};

}  // namespace bulkhead::program
