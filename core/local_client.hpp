#pragma once

#include <string_view>

namespace bulkhead {

// A client inside the program: messages in, messages out, through the same session, resolve, policy
// and lanes as any other client. Destroying it closes the session; that may happen inside of its
// own callback, which is not called again.
class LocalClient {
 public:
  virtual ~LocalClient() = default;
  // Sends one message; answers and notifications arrive through the callback given to connect().
  virtual void send(std::string_view message) = 0;
};

}  // namespace bulkhead
