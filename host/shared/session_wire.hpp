// Connects an MCP client inside this program to a gateway, which is either the host in this process
// or a running gateway.
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
  // Opens the session. Must be called once. Afterwards, wait() calls `on_message` for each message.
  virtual Result<void> open(OnMessage on_message) = 0;
  virtual void send(std::string_view message) = 0;
  virtual bool lost() const { return false; }
  // Blocks until done() returns true, a signal requests a stop, the connection is lost, or the
  // timeout expires.
  virtual void wait(const std::function<bool()> &done, std::uint64_t timeout_ms) = 0;
};

}  // namespace bulkhead::program
