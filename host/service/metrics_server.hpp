// GET /metrics over TCP, where the profile says so (gateway.metrics_listen): for a Prometheus that
// cannot reach the service socket. Nothing else is answered there, and nobody is asked who he is.
#pragma once

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "service/control_server.hpp"
#include "service/service_protocol.hpp"

namespace bulkhead::program {

// BH_E_IO and the like: somebody else listens there, or it is no address of this machine.
Result<OwnedFd> open_metrics_listener(const std::string &address);

// Of the value that ServiceRequest::status is answered with.
ControlAnswer metrics_answer(const std::string &value);

class MetricsServer {
 public:
  // Bounds and time-outs are those of ControlServer.
  MetricsServer(Reactor &reactor, OwnedFd listener, AskService ask);

 private:
  void handle(const ControlRequest &request, ControlServer::Reply reply) const;

  const OwnedFd listener_;
  const bool for_this_machine_;  // it listens on loopback
  const AskService ask_;
  ControlServer server_;
};

}  // namespace bulkhead::program
