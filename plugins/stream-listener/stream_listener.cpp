#include "stream-listener/stream_listener.hpp"

#include <bulkhead/abi/ext/draft/listen.h>
#include <bulkhead/cpp/text.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace stream_listener {

bh_status StreamListener::open(const sockaddr_storage &address, socklen_t size,
                               std::string_view as_configured, bh_error *error, Reach reach) {
  const auto *sockets = host_.ext<bh_host_listen>(BH_EXT_HOST_LISTEN);
  if (sockets == nullptr) {
    return bh::fail(error, BH_E_UNSUPPORTED, "the host does not provide listening sockets");
  }
  std::int32_t fd = -1;
  if (reach == Reach::everybody && !BH_HAS(bh_host_listen, sockets, open_for_all)) {
    return bh::fail(error, BH_E_UNSUPPORTED, "the host does not provide sockets for other users");
  }
  const auto open = reach == Reach::everybody ? sockets->open_for_all : sockets->open;
  const bh_status status = open(host_.ctx(), &address, size, bh::str(as_configured), &fd, error);
  if (status != BH_OK) return status;
  fd_ = fd;
  socklen_t room = sizeof bound_;
  ::getsockname(fd_, reinterpret_cast<sockaddr *>(&bound_), &room);
  if (host_.watch(fd_, BH_FD_READ, bh::fd_callback<&StreamListener::accept_batch>(this), &watch_) !=
      BH_OK) {
    close();
    return bh::fail(error, BH_E_IO, "the host cannot watch the listening socket");
  }
  return BH_OK;
}

void StreamListener::close() noexcept {
  host_.unwatch(watch_);
  host_.timer_cancel(pause_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void StreamListener::accept_batch() {
  bool made_room = false;
  for (int i = 0; i < batch && fd_ >= 0; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int fd =
        ::accept4(fd_, reinterpret_cast<sockaddr *>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      warned_ = made_room = false;
      accepted_(fd, peer);
      continue;
    }
    const int error = errno;
    // accept4() allocates the descriptor before it looks for a connection, so it reports EMFILE
    // even if no connection is pending.
    if (error == EMFILE && make_room_) {
      pollfd waiting{fd_, POLLIN, 0};
      if (::poll(&waiting, 1, 0) == 0) return;
      // make_room_ is called at most once for each new connection. If closing one connection did
      // not suffice, closing more connections would not help.
      if (!std::exchange(made_room, true) && make_room_()) continue;
    }
    if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) pause(error);
    errno = error;
    if (errno != ECONNABORTED && errno != EINTR) return;
  }
}

void StreamListener::pause(int error) {
  if (!warned_) {
    host_.log(BH_LOG_WARN, "accepting no connections for one second: " + bh::error_name(error) +
                               " (raise the limit on open files)");
  }
  warned_ = true;
  host_.modify(watch_, 0);
  pause_ = host_.timer_start(pause_ms, bh::callback<&StreamListener::on_pause_over>(this));
}

void StreamListener::on_pause_over() noexcept {
  pause_ = 0;
  host_.modify(watch_, BH_FD_READ);
}

}  // namespace stream_listener
