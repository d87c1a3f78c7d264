#pragma once

#include <string_view>

namespace bulkhead {

// A client inside the program. Its messages pass through the same sessions, name resolution,
// policies and lanes as those of any other client. Destroying the client closes its session. The
// client may be destroyed inside its own callback, which is then not called again.
class LocalClient {
 public:
  virtual ~LocalClient() = default;
  // Sends one message. Answers and notifications are passed to the callback given to connect().
  virtual void send(std::string_view message) = 0;
};

}  // namespace bulkhead
