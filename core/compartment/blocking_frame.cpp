#include "compartment/blocking_frame.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "bulkhead/cpp/clock.hpp"

namespace bulkhead {
namespace {

bool wait_for(int socket, short events, std::int64_t deadline) {
  for (;;) {
    const std::int64_t left = deadline - static_cast<std::int64_t>(bh::monotonic_ms());
    if (left <= 0) return false;
    pollfd one{socket, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

bool receive_all(int socket, std::int64_t deadline, char *to, std::size_t bytes, OwnedFd *fd) {
  while (bytes > 0) {
    iovec part{to, bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN || !wait_for(socket, POLLIN, deadline)) return false;
      continue;
    }
    const cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(header), sizeof received);
      *fd = OwnedFd(received);
    }
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

bool send_frame(int socket, link::Frame frame, std::string_view payload) {
  frame.bytes = static_cast<std::uint32_t>(payload.size());
  frame.has_fd = 0;
  std::string whole(reinterpret_cast<const char *>(&frame), sizeof frame);
  whole.append(payload);
  const std::int64_t deadline = static_cast<std::int64_t>(bh::monotonic_ms()) + 5'000;
  for (std::string_view left = whole; !left.empty();) {
    const ssize_t sent = ::send(socket, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      left.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EINTR && (errno != EAGAIN || !wait_for(socket, POLLOUT, deadline))) {
      return false;
    }
  }
  return true;
}

bool receive_frame(int socket, int timeout_ms, std::uint64_t max_bytes, link::Frame *frame,
                   std::string *payload, OwnedFd *fd) {
  const std::int64_t deadline = static_cast<std::int64_t>(bh::monotonic_ms()) + timeout_ms;
  char head[sizeof(link::Frame)];
  if (!receive_all(socket, deadline, head, sizeof head, fd)) return false;
  std::memcpy(frame, head, sizeof *frame);
  if (frame->bytes > max_bytes) return false;
  payload->resize(frame->bytes);
  return receive_all(socket, deadline, payload->data(), payload->size(), fd);
}

}  // namespace bulkhead
