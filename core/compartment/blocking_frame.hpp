// Frames of link/channel.hpp without a reactor: for the time before there is one, and for blocking
// requests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/owned_fd.hpp"
#include "link/channel.hpp"

namespace bulkhead {

// False: the other end has closed.
bool send_frame(int socket, link::Frame frame, std::string_view payload);
// Reads the next frame, with at most one descriptor. False: none within timeout_ms, larger than
// max_bytes, or the other end has closed.
bool receive_frame(int socket, int timeout_ms, std::uint64_t max_bytes, link::Frame *frame,
                   std::string *payload, OwnedFd *fd);

}  // namespace bulkhead
