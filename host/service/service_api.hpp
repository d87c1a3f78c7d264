// The requests that a running gateway accepts on its service socket:
//
//   GET    /status               the status that `bulkhead status` shows
//   GET    /metrics              the counters in the Prometheus text format
//   POST   /reload-config        reloads the profile
//   GET    /mcp/connectors       the servers of the profile with their sources
//   POST   /mcp/connectors       adds a server to the user layer and reloads
//   DELETE /mcp/connectors/ID    removes a server from the user layer and reloads
//   GET    /confirm/pending      the calls that wait for human approval
//   POST   /confirm/watch        the same; while a client polls, calls wait for its decisions
//   POST   /confirm/ID           approves or denies a call
//
// The client side is HTTP and JSON; the gateway side uses typed values. Errors are {"error":"..."}.
// To add a path, add a row to the table in service_api.cpp and a ServiceRequest.
#pragma once

#include "base/owned_fd.hpp"
#include "service/control_server.hpp"
#include "service/service_protocol.hpp"

namespace bulkhead::program {

class ServiceApi {
 public:
  // See ControlServer for `listener` and `admit`.
  ServiceApi(Reactor &reactor, int listener, ControlServer::Admit admit, AskService ask);

 private:
  void handle(const ControlRequest &request, ControlServer::Reply reply) const;

  const AskService ask_;
  ControlServer server_;
};

}  // namespace bulkhead::program
