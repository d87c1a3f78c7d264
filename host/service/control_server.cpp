#include "service/control_server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "bulkhead/abi/host.h"
#include "common/http_text.hpp"

namespace bulkhead::program {

ControlServer::ControlServer(Reactor &reactor, int listener, Admit admit, Handler handler)
    : reactor_(reactor),
      listener_(listener),
      admit_(std::move(admit)),
      handler_(std::move(handler)) {
  const auto on_ready = [](void *arg, std::int32_t, std::uint32_t) {
    static_cast<ControlServer *>(arg)->accept_all();
  };
  reactor_.watch(this, listener_, BH_FD_READ, on_ready, this, &watch_);
}

ControlServer::~ControlServer() {
  for (auto &connection : connections_) close(connection);
  if (watch_ != 0) reactor_.unwatch(watch_);
  reactor_.forget(this);
}

ControlServer::Connection *ControlServer::find(std::size_t slot, std::uint64_t number) {
  Connection &connection = connections_[slot];
  return connection.fd >= 0 && connection.number == number ? &connection : nullptr;
}

void ControlServer::accept_all() {
  for (std::size_t i = 0; i < max_connections; ++i) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
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
  if (free_slot == connections_.end()) {
    ::close(fd);
    return;
  }
  Connection &connection = *free_slot;
  connection.server = this;
  connection.number = ++numbers_;
  connection.fd = fd;
  set_timer(connection, request_ms);
  const auto slot = static_cast<std::size_t>(free_slot - connections_.begin());
  admit_(fd, [server = std::weak_ptr(self_), slot, number = connection.number](bool may_ask) {
    const auto alive = server.lock();
    Connection *c = alive == nullptr ? nullptr : (*alive)->find(slot, number);
    if (c != nullptr && c->state == State::admitting) (*alive)->admitted(*c, may_ask);
  });
}

void ControlServer::admitted(Connection &connection, bool may_ask) {
  if (!may_ask) return close(connection);
  connection.state = State::reading;
  const auto on_event = [](void *arg, std::int32_t, std::uint32_t events) {
    auto *c = static_cast<Connection *>(arg);
    c->server->on_ready(*c, events);
  };
  if (reactor_.watch(this, connection.fd, BH_FD_READ, on_event, &connection, &connection.watch) !=
      BH_OK) {
    close(connection);
  }
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
  if (connection.state == State::answering) {
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
  // Gone before its request was whole.
  if (ended && connection.state != State::answering) close(connection);
}

// Answers, or waits for more.
void ControlServer::take(Connection &connection) {
  const HttpHead head = parse_head(connection.in, max_head_bytes, max_body_bytes);
  if (head.state == HttpHead::State::more) return;
  if (head.state == HttpHead::State::bad) {
    return answer(connection, {head.status, error_body(head.why)});
  }
  if (head.wants_continue && !std::exchange(connection.told_to_go_on, true) &&
      connection.in.size() < head.head_bytes + head.body_bytes) {
    static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    if (::send(connection.fd, go_on.data(), go_on.size(), MSG_NOSIGNAL) < 0) {
      return close(connection);
    }
  }
  if (connection.in.size() < head.head_bytes + head.body_bytes) return;
  ControlRequest request;
  request.method = head.method;
  request.path = head.target.substr(0, head.target.find('?'));
  request.host = head.host;
  request.body = connection.in.substr(head.head_bytes, head.body_bytes);
  hand_over(connection, request);
}

void ControlServer::hand_over(Connection &connection, const ControlRequest &request) {
  connection.state = State::answering;
  connection.in.clear();
  // While it works, only the client's end is of interest.
  reactor_.modify(connection.watch, 0);
  if (connection.timer != 0) reactor_.timer_cancel(connection.timer);
  connection.timer = 0;
  const std::size_t slot = static_cast<std::size_t>(&connection - connections_.data());
  handler_(request, [server = std::weak_ptr(self_), slot,
                     number = connection.number](const ControlAnswer &given) {
    const auto alive = server.lock();
    Connection *c = alive == nullptr ? nullptr : (*alive)->find(slot, number);
    if (c != nullptr && c->answer.empty()) (*alive)->answer(*c, given);
  });
}

void ControlServer::answer(Connection &connection, const ControlAnswer &given) {
  connection.state = State::answering;
  connection.answer = http_answer(given.status, given.body, given.type);
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
