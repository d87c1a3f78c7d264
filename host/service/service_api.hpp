// What can be asked of a running gateway through its service socket:
//
//   GET    /status               the snapshot that `bulkhead status` shows
//   GET    /metrics              its counters, as Prometheus reads them
//   POST   /reload-config        reads the profile again and makes it the one that runs
//   GET    /mcp/connectors       the servers of the profile, with where they come from
//   POST   /mcp/connectors       adds one to the user layer, and reloads
//   DELETE /mcp/connectors/ID    takes one of the user layer away, and reloads
//   GET    /confirm/pending      the calls that wait for a person
//   POST   /confirm/watch        the same, and whoever asks will look again: calls may wait for it
//   POST   /confirm/ID           answers one
//
// HTTP and JSON on the side of the client, typed values on the side of the gateway. Errors are
// {"error":"..."}. A further path is a row of the table in service_api.cpp, and a ServiceRequest.
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
