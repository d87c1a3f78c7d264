#include "transport-vsock/splice.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace transport_vsock {

Splice::Splice(const bh::Host &host, int guest, int service, std::string_view early,
               const Events &events)
    : host_(host), events_(events) {
  sides_[0].fd = guest;
  sides_[1].fd = service;
  sides_[1].out.append(early);
}

Splice::~Splice() {
  for (Side &side : sides_) {
    host_.unwatch(side.watch);
    ::close(side.fd);
  }
}

bool Splice::start() {
  return want(sides_[0], sides_[1]) && want(sides_[1], sides_[0]);
}

void Splice::on_event(void *arg, std::int32_t fd, std::uint32_t events) noexcept {
  auto &self = *static_cast<Splice *>(arg);
  const bool guest = fd == self.sides_[0].fd;
  self.handle(self.sides_[guest ? 0 : 1], self.sides_[guest ? 1 : 0], events);
}

void Splice::handle(Side &side, Side &other, std::uint32_t events) {
  if ((events & BH_FD_WRITE) != 0) write(side);
  if ((events & BH_FD_READ) != 0) read(side, other);
  // A pending error would be reported in every event loop iteration. If it is the only event, the
  // socket is therefore unwatched. want() watches it again when the buffer has room for more data.
  if ((events & (BH_FD_ERROR | BH_FD_READ | BH_FD_WRITE)) == BH_FD_ERROR) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(side.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (&side == &sides_[1]) service_failed(error);
    lose(side);
    host_.unwatch(side.watch);
    side.events = 0;
  }
  pass_end(side, other);
  pass_end(other, side);
  if (over() || !want(side, other) || !want(other, side)) events_.ended(events_.arg, *this);
}

// Reads only as much as fits into the buffer. The kernel buffers the rest.
void Splice::read(Side &from, Side &to) {
  if (from.ended || to.out.size() >= buffer_bytes) return;
  const std::size_t room = buffer_bytes - to.out.size();
  if (!to.out.reserve(room)) return;
  const ssize_t n = ::recv(from.fd, to.out.tail(), room, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n > 0) {
    to.out.added(static_cast<std::size_t>(n));
    return write(to);
  }
  from.ended = true;
  if (n < 0) lose(from);
}

void Splice::write(Side &to) {
  if (to.gone) to.out.clear();
  if (to.out.empty()) return;
  const std::string_view rest = to.out.view().substr(to.done);
  const ssize_t n = ::send(to.fd, rest.data(), rest.size(), MSG_NOSIGNAL);
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    if (&to == &sides_[1]) service_failed(errno);
    return lose(to);
  }
  if (&to == &sides_[1]) service_took();
  to.done += static_cast<std::size_t>(n);
  if (to.done == to.out.size()) {
    to.out.clear();
    to.done = 0;
  }
}

// Half-closes `to` once all data from `from` has been written.
void Splice::pass_end(Side &from, Side &to) {
  if (!from.ended || to.told || !to.out.empty()) return;
  to.told = true;
  if (::shutdown(to.fd, SHUT_WR) != 0) lose(to);
}

void Splice::service_took() noexcept {
  if (!std::exchange(reached_, true)) events_.reached(events_.arg);
}

void Splice::service_failed(int error) noexcept {
  if (!reached_ && error_ == 0) error_ = error;
}

void Splice::lose(Side &side) {
  side.gone = true;
  side.out.clear();
  side.done = 0;
}

// Returns true if both sides are closed or half-closed.
bool Splice::over() const noexcept {
  const auto done = [](const Side &side) { return side.told || side.gone; };
  return done(sides_[0]) && done(sides_[1]);
}

// Watches the socket for the events that are needed. Returns false if the host cannot watch it.
bool Splice::want(Side &side, const Side &other) {
  const bool reads = !side.ended && other.out.size() < buffer_bytes;
  const std::uint32_t events = (reads ? std::uint32_t{BH_FD_READ} : 0u) |
                               (side.out.empty() ? 0u : std::uint32_t{BH_FD_WRITE});
  if (events == side.events) return true;
  side.events = events;
  if (side.watch == 0) return host_.watch(side.fd, events, on_event, this, &side.watch) == BH_OK;
  host_.modify(side.watch, events);
  return true;
}

}  // namespace transport_vsock
