#include "connection.hpp"

#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "http-codec/head_writer.hpp"

namespace connector_http {
namespace {

using HeadEnd = http_codec::HeadText<48>;

constexpr std::size_t parts_inline = 12;
using bh::ns_per_ms;
// If a connection has been idle for longer than this, the client checks whether the peer has closed
// it before sending another request on it.
constexpr std::uint64_t trust_idle_ns = 1'000 * ns_per_ms;
constexpr std::size_t kept_capacity = 64 * 1024;

// Returns the end of the request head: the Content-Length of a POST, and the blank line.
HeadEnd end_of_head(const HttpRequest &request) {
  HeadEnd end;
  if (request.method == Method::post) end.field("Content-Length", request.body_bytes);
  end << "\r\n";
  return end;
}

// Makes the kernel detect a dead peer after a minute instead of two hours. Event streams need this,
// because they have no time-out while there is no traffic.
void keep_alive(int fd) noexcept {
  const int on = 1, idle_s = 30, interval_s = 10, probes = 3;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

void shrink(std::string *s) noexcept {
  s->clear();
  if (s->capacity() > kept_capacity) std::string().swap(*s);
}

}  // namespace

Connection::Connection(Http1Client &client, Origin &origin, std::uint64_t connect_timeout_ms)
    : client_(client),
      origin_(origin),
      connect_timeout_ms_(connect_timeout_ms),
      reader_(client.limits_.header_bytes) {}

// ---- connecting ---------------------------------------------------------------------------------

void Connection::begin(HttpSink &sink, std::uint64_t *unsent) {
  sink_ = &sink;
  unsent_ = unsent;
  received_ = surplus_ = keep_alive_ = false;
  reader_.reset();
}

bh_status Connection::open(const HttpRequest &request, HttpSink &sink, std::uint64_t *unsent,
                           bh_error *error) {
  const std::uint64_t now = client_.host_.now_ns();
  deadline_ns_ = now + connect_timeout_ms_ * ns_per_ms;
  if (!origin_.literal && now - origin_.resolved_ns > client_.limits_.resolve_ms * ns_per_ms) {
    origin_.addresses.clear();
  }
  start_timer();
  if (!origin_.addresses.empty()) {
    connect_next();
  } else if (client_.resolve(origin_)) {
    origin_.waiting.push_back(this);
  } else {
    fail(BH_E_UNAVAILABLE, "the host has no free thread for a DNS lookup");
  }
  if (state_ == State::closed) return bh::fail(error, BH_E_UNAVAILABLE, failure_);
  begin(sink, unsent);
  queue_request(request, 0);
  return BH_OK;
}

// Limits the duration of the current phase: resolving the name or connecting to one address. The
// whole attempt must finish by deadline_ns_, and each address gets an equal share of the remaining
// time.
void Connection::start_timer() {
  client_.host_.timer_cancel(timer_);
  const std::uint64_t now = client_.host_.now_ns();
  std::uint64_t left_ms = deadline_ns_ > now ? (deadline_ns_ - now) / ns_per_ms + 1 : 0;
  if (state_ == State::connecting && tried_ < addresses_.size()) {
    left_ms /= addresses_.size() - tried_ + 1;
  }
  timer_ = client_.host_.timer_start(left_ms, bh::callback<&Connection::on_timer>(this));
}

void Connection::on_timer() {
  timer_ = 0;
  if (state_ == State::connecting && client_.host_.now_ns() + ns_per_ms < deadline_ns_) {
    connect_failed(ETIMEDOUT);
  } else {
    fail(BH_E_UNAVAILABLE,
         state_ == State::resolving ? "the DNS lookup timed out" : "connecting timed out");
  }
}

void Connection::connect_next() {
  if (state_ == State::resolving) addresses_ = origin_.addresses;
  state_ = State::connecting;
  int error = EHOSTUNREACH;
  while (tried_ < addresses_.size()) {
    if (begin_connect(addresses_[tried_++])) {
      if (addresses_.size() > 1) start_timer();
      return;
    }
    error = errno;
  }
  fail(BH_E_UNAVAILABLE, "cannot connect: " + bh::error_name(error));
}

bool Connection::begin_connect(const Address &address) {
  fd_ = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return false;
  const int one = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  keep_alive(fd_);
  const auto *to = reinterpret_cast<const sockaddr *>(&address.storage);
  const bool begun = ::connect(fd_, to, address.size) == 0 || errno == EINPROGRESS;
  watched_ = BH_FD_WRITE;
  const auto ready = bh::fd_callback<&Connection::on_event>(this);
  if (begun && client_.host_.watch(fd_, BH_FD_WRITE, ready, &watch_) == BH_OK) return true;
  const int error = errno;
  ::close(fd_);
  fd_ = -1;
  errno = error;
  return false;
}

void Connection::connect_failed(int error) {
  client_.host_.unwatch(watch_);
  ::close(fd_);
  fd_ = -1;
  if (tried_ < addresses_.size()) return connect_next();
  fail(BH_E_UNAVAILABLE, "cannot connect: " + bh::error_name(error));
}

void Connection::connect_done() {
  int error = 0;
  socklen_t n = sizeof error;
  if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &n) != 0) error = errno;
  if (error != 0) return connect_failed(error);
  client_.host_.timer_cancel(timer_);
  if (tried_ > 1) client_.prefer(origin_, addresses_[tried_ - 1]);
  std::vector<Address>().swap(addresses_);
  state_ = State::busy;
  flush();
}

// ---- sending ------------------------------------------------------------------------------------

void Connection::set_unsent(std::uint64_t bytes) noexcept {
  if (unsent_ != nullptr) *unsent_ += bytes - account_;
  account_ = bytes;
}

void Connection::queue_request(const HttpRequest &request, std::size_t skip) {
  const HeadEnd end = end_of_head(request);
  const auto add = [&](std::string_view s) {
    const std::size_t cut = std::min(skip, s.size());
    skip -= cut;
    out_.append(s.substr(cut));
  };
  out_.reserve(request.head.size() + end.view().size() + request.body_bytes -
               std::min<std::size_t>(skip, request.body_bytes));
  add(request.head);
  add(end.view());
  for (std::uint32_t i = 0; i < request.part_count; ++i) {
    add({request.parts[i].p, static_cast<std::size_t>(request.parts[i].n)});
  }
  set_unsent(out_.size());
}

bool Connection::send(const HttpRequest &request, HttpSink &sink, std::uint64_t *unsent) {
  std::array<iovec, parts_inline + 2> parts;
  const HeadEnd end = end_of_head(request);
  const std::string_view last = end.view();
  const std::size_t total = request.head.size() + last.size() + request.body_bytes;
  parts[0] = {const_cast<char *>(request.head.data()), request.head.size()};
  parts[1] = {const_cast<char *>(last.data()), last.size()};
  std::size_t n = 2;
  ssize_t written = 0;
  if (request.part_count <= parts_inline) {
    for (std::uint32_t i = 0; i < request.part_count; ++i) {
      parts[n++] = {const_cast<char *>(request.parts[i].p),
                    static_cast<std::size_t>(request.parts[i].n)};
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = n;
    do {
      written = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (written < 0 && errno == EINTR);
    if (written < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    if (written < 0) written = 0;
  }
  begin(sink, unsent);
  state_ = State::busy;
  if (static_cast<std::size_t>(written) == total) return true;
  queue_request(request, static_cast<std::size_t>(written));
  if (request.part_count > parts_inline) {
    flush();
  } else {
    watch_for(BH_FD_READ | BH_FD_WRITE);
  }
  return true;
}

void Connection::watch_for(std::uint32_t events) {
  if (events == watched_) return;
  watched_ = events;
  client_.host_.modify(watch_, events);
}

void Connection::flush() {
  while (out_at_ < out_.size()) {
    const ssize_t n =
        ::send(fd_, out_.data() + out_at_, out_.size() - out_at_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    // The server may have responded before the connection broke, so the response is read first. If
    // there is none, the read reports the error.
    if (n < 0) return watch_for(BH_FD_READ);
    out_at_ += static_cast<std::size_t>(n);
  }
  set_unsent(out_.size() - out_at_);
  if (out_at_ == out_.size()) {
    shrink(&out_);
    out_at_ = 0;
    watch_for(BH_FD_READ);
  } else {
    watch_for(BH_FD_READ | BH_FD_WRITE);
  }
}

// ---- receiving ----------------------------------------------------------------------------------

void Connection::on_event(std::uint32_t events) {
  if (state_ == State::connecting) return connect_done();
  if (state_ == State::idle) {
    // An idle connection that is readable cannot be reused: the peer has closed it or sent
    // unexpected bytes.
    return client_.retire(this);
  }
  if ((events & BH_FD_WRITE) != 0 && state_ == State::busy) flush();
  if ((events & (BH_FD_READ | BH_FD_ERROR)) != 0 && state_ == State::busy) readable();
}

void Connection::readable() {
  std::span<char> room;
  if (reader_.missing() > 0) room = sink_->room();
  const bool direct = !room.empty();
  char *to = direct ? room.data() : client_.scratch_.get();
  const std::size_t size =
      direct ? std::min<std::size_t>(room.size(), reader_.missing()) : Http1Client::scratch_bytes;
  ssize_t n = 0;
  do {
    n = ::recv(fd_, to, size, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
  if (n <= 0) return ended(n < 0 ? errno : 0);
  received_ = true;
  consume({to, static_cast<std::size_t>(n)});
}

// The peer has closed or reset the connection during a request.
void Connection::ended(int error) {
  if (reader_.ends_with_connection() && error == 0) return complete();
  std::string text = error == 0 ? "the server closed the connection" : bh::error_name(error);
  text += received_ ? " in the middle of its response" : " before it responded";
  if (account_ > 0) {
    text += "; the request was not sent completely";
  } else {
    text += "; the request may have run";
  }
  fail(BH_E_IO, text);
}

void Connection::consume(std::string_view in) {
  using Result = http_codec::ResponseReader::Result;
  std::string_view piece;
  for (;;) {
    switch (reader_.next(in, piece)) {
      case Result::more:
        return;
      case Result::head:
        if (!take_head(in)) return;
        break;
      case Result::body:
        if (!deliver_body(piece)) return;
        break;
      case Result::done:
        surplus_ = !in.empty();
        return complete();
      case Result::invalid:
        return protocol_error(reader_.why());
      case Result::head_too_large:
        return fail(BH_E_LIMIT, "the response head is longer than " +
                                    std::to_string(client_.limits_.header_bytes) + " bytes");
    }
  }
}

// Processes the response head. `in` contains the bytes after the head. Returns false if the request
// has ended; otherwise, the body follows.
bool Connection::take_head(std::string_view in) {
  const ResponseHead &head = reader_.head();
  if (!head.content_encoding.empty() && !equal_ignoring_case(head.content_encoding, "identity")) {
    return protocol_error("it has a content encoding that was not requested"), false;
  }
  keep_alive_ = head.keep_alive;
  keep_alive_s_ = head.keep_alive_s;
  const bool known = head.framing == Framing::none || head.framing == Framing::length;
  const std::uint64_t length = head.framing == Framing::length ? head.content_length : 0;
  HttpSink *const sink = sink_;
  if (known && in.size() >= length) {
    surplus_ = in.size() > length;
    detach(true)->on_whole(head, in.substr(0, length));
    return false;
  }
  const bool wanted = sink->on_head(head);
  if (sink_ != sink) return false;  // cancelled in the callback
  if (!wanted) cancel();
  return wanted;
}

// Returns false if the request has ended.
bool Connection::deliver_body(std::string_view piece) {
  HttpSink *sink = sink_;
  const bool wanted = sink->on_body(piece);
  if (sink_ != sink) return false;  // cancelled in the callback
  if (!wanted) cancel();
  return wanted;
}

// ---- finishing a request ------------------------------------------------------------------------

// Detaches the request from the connection. The connection then becomes idle, or is closed if it
// cannot be reused.
HttpSink *Connection::detach(bool reuse) {
  HttpSink *sink = sink_;
  const bool whole_request_sent = account_ == 0;
  set_unsent(0);
  sink_ = nullptr;
  unsent_ = nullptr;
  client_.host_.timer_cancel(timer_);
  if (reuse && keep_alive_ && !surplus_ && whole_request_sent && state_ == State::busy) {
    state_ = State::idle;
    idle_since_ns_ = client_.host_.now_ns();
    client_.put_idle(this);
  } else {
    client_.retire(this);
  }
  return sink;
}

void Connection::complete() {
  detach(true)->on_done(nullptr);
}

void Connection::fail(bh_status code, const std::string &text) {
  failure_ = origin_.key + ": " + text;
  const bh_error error = bh::make_error(code, failure_);
  if (HttpSink *sink = detach(false)) sink->on_done(&error);
}

void Connection::protocol_error(const char *why) {
  fail(BH_E_PROTOCOL, std::string("the response is not valid HTTP: ") + why);
}

void Connection::cancel() {
  detach(false);
}

bool Connection::expired(std::uint64_t now_ns, std::uint64_t idle_ms) const noexcept {
  std::uint64_t keep_ms = idle_ms;
  if (keep_alive_s_ != 0) {
    // The server has announced when it will close the connection. The connection is not used in the
    // last second before that.
    const std::uint64_t said = std::uint64_t{keep_alive_s_} * 1000;
    keep_ms = std::min(keep_ms, said > 2000 ? said - 1000 : said / 2);
  }
  return now_ns - idle_since_ns_ >= keep_ms * ns_per_ms;
}

bool Connection::reusable(std::uint64_t now_ns) const {
  if (expired(now_ns, std::numeric_limits<std::uint32_t>::max())) return false;
  if (now_ns - idle_since_ns_ < trust_idle_ns) return true;
  char byte = 0;
  const ssize_t n = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void Connection::close() noexcept {
  client_.host_.timer_cancel(timer_);
  client_.host_.unwatch(watch_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  set_unsent(0);
  sink_ = nullptr;
  unsent_ = nullptr;
  state_ = State::closed;
}

}  // namespace connector_http
