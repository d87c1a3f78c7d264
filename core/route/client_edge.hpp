// The interface of client edges. A client edge implements everything that depends on a protocol
// generation on the client side: handshake, session, capabilities, methods, notifications and the
// form of results (ResultForm).
//
// Runs on the reactor thread. Owned by the Router.
#pragma once

#include "route/client_answers.hpp"
#include "route/message.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

class ClientEdge {
 public:
  virtual ~ClientEdge() = default;
  // Returns true if this edge handles the message. ClientMessages asks its edges in order and uses
  // the first one that returns true, or the last one if all of them return false. `headers` is null
  // if the transport has no headers.
  virtual bool speaks(const Session &session, const Message &message,
                      const WireHeaders *headers) const = 0;
  // Returns true if the request starts a session. Such a request cannot be handled as a sessionless
  // message.
  virtual bool begins_session(const mcp::Scan &request) const = 0;
  virtual bool takes_batches(const Session &session) const = 0;
  // Responds to the request immediately or later. The session may have ended when this function
  // returns.
  virtual void request(Session &session, Incoming &request) = 0;
  virtual void notification(Session &session, const Message &message) = 0;
};

}  // namespace bulkhead
