#include "service/control_server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "bulkhead/abi/host.h"
#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "http-codec/head_writer.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

using http_codec::Field;
using http_codec::RequestFeed;

constexpr http_codec::FeedLimits feed_limits{.head_bytes = ControlServer::max_head_bytes,
                                             .body_bytes = ControlServer::max_body_bytes,
                                             .needs_host = false};

ControlAnswer refusal(const RequestFeed &feed) {
  switch (feed.status()) {
    case 413:
      return {413, error_body("the body is larger than " +
                              std::to_string(ControlServer::max_body_bytes) + " bytes")};
    case 431:
      return {431, error_body("the request head is too large")};
    default:
      return {feed.status(), error_body(feed.why())};
  }
}

// Returns an error response if the request is valid HTTP but not accepted here. Otherwise, returns
// a response with status 0.
ControlAnswer refusal_of_head(const RequestFeed &feed) {
  const http_codec::RequestHead &head = feed.head();
  if (!feed.text(head.path).starts_with('/') || head.authority.n > 0) {
    return {400, error_body("not an HTTP/1.1 request")};
  }
  if (head.chunked) return {501, error_body("a body requires a Content-Length header")};
  const bool of_page =
      head.has(Field::fetch_site) && !bh::equal_ignoring_case(feed.text(Field::fetch_site), "none");
  if (head.has(Field::origin) || of_page) {
    return {403, error_body("web pages cannot use this socket")};
  }
  return {0, {}};
}

// Discards input. If unread bytes remain when the socket is closed, the kernel resets the
// connection, and the client may lose the response.
void discard_input(int fd) {
  std::array<char, 8192> buffer;
  std::size_t left = ControlServer::max_head_bytes + ControlServer::max_body_bytes;
  while (left > 0) {
    const ssize_t n = ::recv(fd, buffer.data(), std::min(left, buffer.size()), 0);
    if (n <= 0) return;
    left -= static_cast<std::size_t>(n);
  }
}

std::string http_answer(const ControlAnswer &answer) {
  http_codec::HeadText<512> head;
  head << http_codec::status_line(answer.status);
  head.field("Content-Type", answer.type);
  head.field("Content-Length", answer.body.size());
  head << "Connection: close\r\n\r\n";
  return std::string(head.view()) += answer.body;
}

}  // namespace

std::string error_body(std::string_view why) {
  std::string out = "{\"error\":";
  bh::json::append_quoted(&out, why);
  return out + "}";
}

ControlServer::ControlServer(Reactor &reactor, int listener, Admit admit, Handler handler)
    : reactor_(reactor),
      listener_(listener),
      admit_(std::move(admit)),
      handler_(std::move(handler)) {
  reactor_.watch(this, listener_, BH_FD_READ, bh::fd_callback<&ControlServer::accept_all>(this),
                 &watch_);
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
      // The listener stays readable, so without this pause the event loop would spin.
      reactor_.modify(watch_, 0);
      reactor_.timer_start(this, pause_ms, bh::callback(this, [](ControlServer &self) {
                             self.reactor_.modify(self.watch_, BH_FD_READ);
                           }));
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
  connection.feed = std::make_unique<RequestFeed>(feed_limits);
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
  const auto on_event = bh::fd_callback(
      &connection, [](Connection &it, std::uint32_t events) { it.server->on_ready(it, events); });
  if (reactor_.watch(this, connection.fd, BH_FD_READ, on_event, &connection.watch) != BH_OK) {
    close(connection);
  }
}

void ControlServer::set_timer(Connection &connection, std::uint64_t ms) {
  const auto on_late = bh::callback(&connection, [](Connection &late) {
    late.timer = 0;
    late.server->close(late);
  });
  if (connection.timer != 0) reactor_.timer_cancel(connection.timer);
  connection.timer = reactor_.timer_start(this, ms, on_late);
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
  while (connection.state == State::reading) {
    const ssize_t n = ::recv(connection.fd, buffer.data(), buffer.size(), 0);
    if (n > 0) {
      process_input(connection, {buffer.data(), static_cast<std::size_t>(n)});
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      return close(connection);  // the client has disconnected before its request was complete
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

// Parses input, and handles the request once it is complete.
void ControlServer::process_input(Connection &connection, std::string_view in) {
  const RequestFeed::Result result = connection.feed->feed(in);
  if (result == RequestFeed::Result::error) return answer(connection, refusal(*connection.feed));
  if (!connection.feed->head_known()) return;
  const ControlAnswer refused = refusal_of_head(*connection.feed);
  if (refused.status != 0) return answer(connection, refused);
  if (result == RequestFeed::Result::request) return hand_over(connection);
  const bool waits = connection.feed->head().expects_continue;
  if (waits && !std::exchange(connection.sent_continue, true) &&
      ::send(connection.fd, http_codec::continue_head.data(), http_codec::continue_head.size(),
             MSG_NOSIGNAL) < 0) {
    close(connection);
  }
}

void ControlServer::hand_over(Connection &connection) {
  const auto feed = std::exchange(connection.feed, nullptr);
  const std::string_view path = feed->text(feed->head().path);
  ControlRequest request;
  request.method = name_of(feed->head().method);
  request.path = path;
  request.host = feed->text(Field::host);
  request.body = feed->body();
  connection.state = State::answering;
  // While the handler runs, the only relevant event is a disconnect, which is always reported.
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
  discard_input(connection.fd);
  connection.state = State::answering;
  connection.answer = http_answer(given);
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
