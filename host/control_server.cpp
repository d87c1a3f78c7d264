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
#include "http_text.hpp"
#include "paths.hpp"
#include "peer.hpp"

namespace bulkhead::program {

std::string control_socket_name() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto ticks = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000u +
                     static_cast<std::uint64_t>(now.tv_nsec) / 1000u;
  return std::to_string(::getpid()) + "-" + std::to_string(ticks) + ".sock";
}

Result<std::unique_ptr<ControlServer>> ControlServer::open(Reactor &reactor, std::string path,
                                                           pid_t own, Handler handler) {
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
      new ControlServer(reactor, std::move(path), own, std::move(handler)));
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
      start(fd);
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

void ControlServer::start(int fd) {
  const auto free_slot = std::find_if(connections_.begin(), connections_.end(),
                                      [](const Connection &c) { return c.fd < 0; });
  if (free_slot == connections_.end() || !peer_may_ask(fd, own_)) {
    ::close(fd);
    return;
  }
  Connection &connection = *free_slot;
  connection.server = this;
  connection.number = ++numbers_;
  connection.fd = fd;
  const auto on_event = [](void *arg, std::int32_t, std::uint32_t events) {
    auto *c = static_cast<Connection *>(arg);
    c->server->on_ready(*c, events);
  };
  if (reactor_.watch(this, fd, BH_FD_READ, on_event, &connection, &connection.watch) != BH_OK) {
    return close(connection);
  }
  set_timer(connection, request_ms);
}

void ControlServer::set_timer(Connection &connection, std::uint64_t ms) {
  const auto on_late = [](void *arg) {
    auto *c = static_cast<Connection *>(arg);
    c->timer = 0;
    c->server->close(*c);
  };
  if (connection.timer != 0) reactor_.timer_cancel(connection.timer);
  connection.timer = reactor_.timer_start(this, ms, on_late, &connection);
}

void ControlServer::on_ready(Connection &connection, std::uint32_t events) {
  if (connection.answering) {
    if ((events & BH_FD_ERROR) != 0) return close(connection);
    return write_more(connection);
  }
  read_more(connection);
}

void ControlServer::read_more(Connection &connection) {
  std::array<char, 8192> buffer;
  bool ended = false;
  while (!ended) {
    const ssize_t n = ::recv(connection.fd, buffer.data(), buffer.size(), 0);
    if (n > 0) {
      connection.in.append(buffer.data(), static_cast<std::size_t>(n));
      if (connection.in.size() > max_head_bytes + max_body_bytes) break;
    } else if (n < 0 && errno == EAGAIN) {
      break;
    } else {
      ended = n == 0 || errno != EINTR;
    }
  }
  take(connection);
  if (ended && !connection.answering) close(connection);  // gone before its request was whole
}

// Answers, or waits for more.
void ControlServer::take(Connection &connection) {
  const HttpHead head = parse_head(connection.in, max_head_bytes, max_body_bytes);
  if (head.state == HttpHead::State::more) return;
  if (head.state == HttpHead::State::bad) {
    return answer(connection, {head.status, error_body(head.why)});
  }
  if (head.wants_continue && connection.in.size() < head.head_bytes + head.body_bytes) {
    static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    if (::send(connection.fd, go_on.data(), go_on.size(), MSG_NOSIGNAL) < 0) {
      return close(connection);
    }
  }
  if (connection.in.size() < head.head_bytes + head.body_bytes) return;
  ControlRequest request;
  request.method = head.method;
  request.path = head.target.substr(0, head.target.find('?'));
  request.body = connection.in.substr(head.head_bytes, head.body_bytes);
  hand_over(connection, std::move(request));
}

void ControlServer::hand_over(Connection &connection, ControlRequest request) {
  connection.answering = true;
  connection.in.clear();
  // While it works, only the client's end is of interest.
  reactor_.modify(connection.watch, 0);
  if (connection.timer != 0) reactor_.timer_cancel(connection.timer);
  connection.timer = 0;
  const std::size_t slot = static_cast<std::size_t>(&connection - connections_.data());
  handler_(request, [server = std::weak_ptr(self_), slot,
                     number = connection.number](const ControlAnswer &given) {
    const auto alive = server.lock();
    if (alive == nullptr) return;
    Connection &c = (*alive)->connections_[slot];
    if (c.fd >= 0 && c.number == number && c.answer.empty()) (*alive)->answer(c, given);
  });
}

void ControlServer::answer(Connection &connection, const ControlAnswer &given) {
  connection.answering = true;
  connection.answer = http_answer(given.status, given.body);
  connection.sent = 0;
  reactor_.modify(connection.watch, BH_FD_WRITE);
  set_timer(connection, answer_ms);
  write_more(connection);
}

void ControlServer::write_more(Connection &connection) {
  if (connection.answer.empty()) return;
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
