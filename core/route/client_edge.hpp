// What clients of one generation of the protocol send. Everything on the clients' side that depends
// on a revision is behind this: handshake and session, capabilities, which methods there are, what
// notifications mean. Owner: the Router. Thread: [io].
#pragma once

#include "route/client_answers.hpp"
#include "route/message.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

class ClientEdge {
 public:
  virtual ~ClientEdge() = default;
  // The message is of this generation. ClientMessages asks its edges in order; the first that says
  // so gets the message.
  virtual bool speaks(const Session &session, const mcp::Scan &message) const = 0;
  // The request can only be handled in a session that lasts, and begins it.
  virtual bool begins_session(const mcp::Scan &request) const = 0;
  virtual bool takes_batches(const Session &session) const = 0;
  // Answers the request, now or later. The session may have ended when this returns.
  virtual void request(Session &session, Incoming &request) = 0;
  virtual void notification(Session &session, const Message &message) = 0;
};

}  // namespace bulkhead
