#pragma once

#include <string_view>

namespace bulkhead {

// A client that runs inside the embedding program. Its messages use the same sessions, name
// resolution, policies and lanes as the messages of other clients. Destroying the client closes its
// session. The client may be destroyed inside its own callback; the callback is then not called
// again.
class LocalClient {
 public:
  virtual ~LocalClient() = default;
  // Sends one message, or drops it if the session has ended. Messages to the client are passed to
  // the callback of Host::connect().
  virtual void send(std::string_view message) = 0;
};

}  // namespace bulkhead
