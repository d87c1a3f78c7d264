// The client edge of one protocol generation. It contains everything on the client side that
// depends on a revision: handshake, session, capabilities, methods, the meaning of notifications,
// and the form of results (ResultForm).
//
// Runs on the I/O thread. Owned by the Router.
#pragma once

#include "route/client_answers.hpp"
#include "route/message.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

class ClientEdge {
 public:
  virtual ~ClientEdge() = default;
  // Returns true if the message belongs to this generation. ClientMessages tries its edges in
  // order; the first match handles the message. `headers` is null if the wire has none.
  virtual bool speaks(const Session &session, const Message &message,
                      const WireHeaders *headers) const = 0;
  // Returns true if the request starts a session and cannot be handled as a sessionless message.
  virtual bool begins_session(const mcp::Scan &request) const = 0;
  virtual bool takes_batches(const Session &session) const = 0;
  // Answers the request, now or later. The session may have ended when this returns.
  virtual void request(Session &session, Incoming &request) = 0;
  virtual void notification(Session &session, const Message &message) = 0;
};

}  // namespace bulkhead
