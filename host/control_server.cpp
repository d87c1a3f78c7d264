#include "control_server.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "bulkhead/abi/host.h"
#include "paths.hpp"

namespace bulkhead::program {
namespace {

bool peer_is_allowed(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

}  // namespace

std::string control_socket_name() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto ticks = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000u +
                     static_cast<std::uint64_t>(now.tv_nsec) / 1000u;
  return std::to_string(::getpid()) + "-" + std::to_string(ticks) + ".sock";
}

Result<std::unique_ptr<ControlServer>> ControlServer::open(Reactor &reactor, std::string path,
                                                           Snapshot snapshot) {
  // Bound under another name and renamed when it listens: a socket that does not listen yet looks
  // like one that a dead gateway left, and `status` removes those.
  const std::string unready = path + "~";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (unready.size() >= sizeof address.sun_path) {
    return fail(BH_E_INTERNAL, path + ": is too long for a socket's name");
  }
  std::memcpy(address.sun_path, unready.data(), unready.size());
  std::unique_ptr<ControlServer> self(
      new ControlServer(reactor, std::move(path), std::move(snapshot)));
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(BH_E_INTERNAL, describe_errno("socket", errno));
  // The folder is 0700 already; the mask closes the moment between bind and chmod all the same.
  const mode_t mask = ::umask(0177);
  const int bound = ::bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address);
  const int error = errno;
  ::umask(mask);
  if (bound != 0) {
    ::close(fd);
    return fail(BH_E_INTERNAL, describe_errno(self->path_, error));
  }
  self->fd_ = fd;
  const auto on_ready = [](void *arg, std::int32_t, std::uint32_t) {
    static_cast<ControlServer *>(arg)->accept_all();
  };
  if (::listen(fd, max_connections) != 0 || ::rename(unready.c_str(), self->path_.c_str()) != 0 ||
      reactor.watch(self.get(), fd, BH_FD_READ, on_ready, self.get(), &self->watch_) != BH_OK) {
    const int why = errno;
    ::unlink(unready.c_str());
    return fail(BH_E_INTERNAL, describe_errno(self->path_, why));
  }
  return self;
}

ControlServer::~ControlServer() {
  *alive_ = false;
  for (auto &connection : connections_) close(connection);
  if (watch_ != 0) reactor_.unwatch(watch_);
  reactor_.forget(this);
  if (fd_ >= 0) {
    ::close(fd_);
    ::unlink(path_.c_str());
  }
}

void ControlServer::accept_all() {
  for (std::size_t i = 0; i < max_connections; ++i) {
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      start_answer(fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      // The listener stays readable; without a pause the loop would spin.
      reactor_.modify(watch_, 0);
      const auto resume = [](void *arg) {
        auto *self = static_cast<ControlServer *>(arg);
        self->reactor_.modify(self->watch_, BH_FD_READ);
      };
      reactor_.timer_start(this, pause_ms, resume, this);
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void ControlServer::start_answer(int fd) {
  const auto free_slot = std::find_if(connections_.begin(), connections_.end(),
                                      [](const Connection &c) { return c.fd < 0; });
  if (free_slot == connections_.end() || !peer_is_allowed(fd)) {
    ::close(fd);
    return;
  }
  Connection &connection = *free_slot;
  connection.server = this;
  connection.fd = fd;
  const std::uint64_t number = connection.number = ++connections_made_;
  const auto on_late = [](void *arg) {
    auto *c = static_cast<Connection *>(arg);
    c->timer = 0;
    c->server->close(*c);
  };
  connection.timer = reactor_.timer_start(this, answer_ms, on_late, &connection);
  snapshot_([this, number, &connection, alive = alive_](std::string text) {
    if (*alive && connection.number == number) answer(connection, std::move(text));
  });
}

void ControlServer::answer(Connection &connection, std::string text) {
  connection.answer = std::move(text);
  write_more(connection);
  if (connection.fd < 0) return;
  const auto on_ready = [](void *arg, std::int32_t, std::uint32_t events) {
    auto *c = static_cast<Connection *>(arg);
    if ((events & BH_FD_ERROR) != 0) return c->server->close(*c);
    c->server->write_more(*c);
  };
  if (reactor_.watch(this, connection.fd, BH_FD_WRITE, on_ready, &connection, &connection.watch) !=
      BH_OK) {
    close(connection);
  }
}

void ControlServer::write_more(Connection &connection) {
  while (connection.sent < connection.answer.size()) {
    const ssize_t n = ::send(connection.fd, connection.answer.data() + connection.sent,
                             connection.answer.size() - connection.sent, MSG_NOSIGNAL);
    if (n >= 0) {
      connection.sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      break;
    }
  }
  close(connection);
}

void ControlServer::close(Connection &connection) {
  if (connection.fd < 0) return;
  if (connection.watch != 0) reactor_.unwatch(connection.watch);
  if (connection.timer != 0) reactor_.timer_cancel(connection.timer);
  ::close(connection.fd);
  connection = Connection{};
}

}  // namespace bulkhead::program
