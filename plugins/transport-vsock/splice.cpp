#include "transport-vsock/splice.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace transport_vsock {

Splice::Splice(const bh::Host &host, int guest, int service, std::string_view early,
               void (*ended)(void *arg, Splice &splice), void *arg)
    : host_(host), ended_(ended), arg_(arg) {
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
  for (Side &side : sides_) {
    // Writable: the service's socket may still be connecting.
    side.events = BH_FD_READ | BH_FD_WRITE;
    if (host_.watch(side.fd, side.events, on_event, this, &side.watch) != BH_OK) return false;
  }
  return true;
}

void Splice::on_event(void *arg, std::int32_t fd, std::uint32_t events) noexcept {
  auto &self = *static_cast<Splice *>(arg);
  const bool guest = fd == self.sides_[0].fd;
  self.handle(self.sides_[guest ? 0 : 1], self.sides_[guest ? 1 : 0], events);
}

void Splice::handle(Side &side, Side &other, std::uint32_t events) {
  bool alive = true;
  if ((events & BH_FD_WRITE) != 0) alive = write(side);
  if (alive && (events & BH_FD_READ) != 0) alive = read(side, other);
  // Reported whatever is asked for: with nothing to read or write it would be for ever.
  if ((events & BH_FD_ERROR) != 0 && (events & (BH_FD_READ | BH_FD_WRITE)) == 0) alive = false;
  alive = alive && pass_end(side, other) && pass_end(other, side);
  const bool all_said = sides_[0].told && sides_[1].told;
  if (!alive || all_said) return ended_(arg_, *this);
  want(side, other);
  want(other, side);
}

// Only as much as there is room for; the kernel holds the rest back.
bool Splice::read(Side &from, Side &to) {
  if (from.ended || !to.out.reserve(buffer_bytes - to.out.size())) return true;
  const std::size_t room = buffer_bytes - to.out.size();
  if (room == 0) return true;
  const ssize_t n = ::recv(from.fd, to.out.tail(), room, 0);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  from.ended = n == 0;
  to.out.added(static_cast<std::size_t>(n));
  return write(to);
}

bool Splice::write(Side &to) {
  if (to.done == to.out.size()) return true;
  const std::string_view rest = to.out.view().substr(to.done);
  const ssize_t n = ::send(to.fd, rest.data(), rest.size(), MSG_NOSIGNAL);
  // ENOTCONN: still connecting.
  if (n < 0) return errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
  to.done += static_cast<std::size_t>(n);
  if (to.done == to.out.size()) {
    to.out.clear();
    to.done = 0;
  }
  return true;
}

// Half-closes `to` when all that `from` has ever sent is out.
bool Splice::pass_end(Side &from, Side &to) {
  if (!from.ended || to.told || !to.out.empty()) return true;
  to.told = true;
  return ::shutdown(to.fd, SHUT_WR) == 0 || errno == ENOTCONN;
}

void Splice::want(Side &side, const Side &other) {
  const bool reads = !side.ended && other.out.size() < buffer_bytes;
  const std::uint32_t events = (reads ? std::uint32_t{BH_FD_READ} : 0u) |
                               (side.out.empty() ? 0u : std::uint32_t{BH_FD_WRITE});
  if (events == side.events) return;
  side.events = events;
  host_.modify(side.watch, events);
}

}  // namespace transport_vsock
