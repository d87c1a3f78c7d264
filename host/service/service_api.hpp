// Handles the HTTP requests that a running gateway accepts on its service socket:
//
//   GET    /status               status, as shown by `bulkhead status`
//   GET    /metrics              counters in the Prometheus text format
//   POST   /reload-config        reload the profile
//   GET    /mcp/connectors       list the servers of the profile with their sources
//   POST   /mcp/connectors       add a server to the user layer and reload
//   DELETE /mcp/connectors/ID    remove a server from the user layer and reload
//   POST   /mcp/restart/ID       reload the profile and restart a server
//   POST   /plugins/swap/ID      replace the file of a tools plugin
//   POST   /plugins/rollback/ID  restore the version before the last swap
//   POST   /join                 use this gateway's servers (shared/local_clients.hpp)
//   GET    /confirm/pending      list granted approvals and the calls that wait for approval
//   POST   /confirm/watch        same list; while a client polls, calls wait for approval
//   POST   /confirm/ID           approve or deny a call, or revoke a granted approval
//
// Clients use HTTP and JSON, and the gateway receives typed values. Errors are {"error":"..."}. To
// add a path, add a ServiceRequest and a row to the table in service_api.cpp.
#pragma once

#include "base/owned_fd.hpp"
#include "service/control_server.hpp"
#include "service/service_protocol.hpp"

namespace bulkhead::program {

class ServiceApi {
 public:
  // For `listener` and `admit`, see ControlServer.
  ServiceApi(Reactor &reactor, int listener, ControlServer::Admit admit, AskService ask);

 private:
  void handle(const ControlRequest &request, ControlServer::Reply reply) const;

  const AskService ask_;
  ControlServer server_;
};

}  // namespace bulkhead::program
