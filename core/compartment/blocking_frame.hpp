// Sends and receives frames (link/channel.hpp) without a reactor. Used before the reactor exists,
// and for blocking requests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/owned_fd.hpp"
#include "link/channel.hpp"

namespace bulkhead {

// Sends a frame. Returns false if it cannot be sent within 5 s, or if the peer has closed the
// socket.
bool send_frame(int socket, link::Frame frame, std::string_view payload);
// Receives the next frame and at most one file descriptor. Returns false if no frame arrives within
// timeout_ms, if the frame is larger than max_bytes, or if the peer has closed the socket.
bool receive_frame(int socket, int timeout_ms, std::uint64_t max_bytes, link::Frame *frame,
                   std::string *payload, OwnedFd *fd);

}  // namespace bulkhead
