// Connects the program's own MCP client to a gateway: the host in this process, or a running
// gateway.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.hpp"

namespace bulkhead::program {

class SessionWire {
 public:
  using OnMessage = std::function<void(std::string_view message)>;

  virtual ~SessionWire() = default;
  // Opens the session. Call it once. From then on, wait() calls on_message for each message.
  virtual Result<void> open(OnMessage on_message) = 0;
  virtual void send(std::string_view message) = 0;
  // Returns true if the connection has ended.
  virtual bool lost() const { return false; }
  // Returns when done() is true, a signal requests a stop, the connection is lost, or the time-out
  // has elapsed.
  virtual void wait(const std::function<bool()> &done, std::uint64_t timeout_ms) = 0;
};

}  // namespace bulkhead::program
