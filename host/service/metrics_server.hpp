// Serves GET /metrics over TCP, for Prometheus servers that cannot access the service socket. Used
// if gateway.metrics_listen is set. There is no authentication, and no other path is served.
#pragma once

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "service/control_server.hpp"
#include "service/service_protocol.hpp"

namespace bulkhead::program {

// Returns an error if the address is invalid, is in use or does not belong to this machine.
Result<OwnedFd> open_metrics_listener(const std::string &address);

// Formats the response. `value` is the archived result of ServiceRequest::status.
ControlAnswer metrics_answer(const std::string &value);

class MetricsServer {
 public:
  // The connection limits and timeouts of ControlServer apply.
  MetricsServer(Reactor &reactor, OwnedFd listener, AskService ask);

 private:
  void handle(const ControlRequest &request, ControlServer::Reply reply) const;

  const OwnedFd listener_;
  const bool for_this_machine_;  // the listener is on a loopback address
  const AskService ask_;
  ControlServer server_;
};

}  // namespace bulkhead::program
