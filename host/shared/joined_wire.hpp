// Connects a command to a session in a running gateway. Messages are sent as frames over the
// gateway's socket for local clients. The client does not offer to receive server-initiated
// messages (docs/relay.md), so the gateway sends only responses.
//
// Used on one thread. wait() blocks. A message is limited to max_message_bytes.
#pragma once

#include <string>

#include "base/owned_fd.hpp"
#include "mcp-frame/frame_reader.hpp"
#include "shared/running_gateway.hpp"
#include "shared/session_wire.hpp"

namespace bulkhead::program {

class JoinedWire final : public SessionWire {
 public:
  JoinedWire(RunningGateway gateway, std::uint64_t max_message_bytes);

  Result<void> open(OnMessage on_message) override;
  void send(std::string_view message) override;
  bool lost() const override { return !fd_; }
  void wait(const std::function<bool()> &done, std::uint64_t timeout_ms) override;

 private:
  void write(std::string_view bytes);
  bool read_some();

  const RunningGateway gateway_;
  const std::size_t max_total_;  // limit for the length of a frame
  OnMessage on_message_;
  OwnedFd fd_;
  mcp_frame::FrameReader reader_;
  std::uint32_t last_stream_ = 0;
};

}  // namespace bulkhead::program
