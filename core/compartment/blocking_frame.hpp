// Frames of link/channel.hpp without a reactor: before there is one, and for questions whose answer
// is waited for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/owned_fd.hpp"
#include "link/channel.hpp"

namespace bulkhead {

// False: the other end has gone.
bool send_frame(int socket, link::Frame frame, std::string_view payload);
// The next frame, with at most one descriptor. False: not within timeout_ms, larger than max_bytes,
// or the other end has gone.
bool receive_frame(int socket, int timeout_ms, std::uint64_t max_bytes, link::Frame *frame,
                   std::string *payload, OwnedFd *fd);

}  // namespace bulkhead
