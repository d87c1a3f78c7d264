#include "connection.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "http-codec/head_writer.hpp"

namespace transport_http {

Connection::Connection(ConnectionOwner &owner, const bh::Host &host, const ConnectionBounds &bounds,
                       int fd, std::string_view peer)
    : owner_(owner),
      host_(host),
      bounds_(bounds),
      fd_(fd),
      feed_(bounds.feed),
      since_ns_(host.now_ns()),
      peer_(peer) {}

Connection::~Connection() {
  host_.unwatch(watch_);
  ::close(fd_);
}

bool Connection::start() noexcept {
  events_ = BH_FD_READ;
  if (host_.watch(fd_, events_, bh::fd_callback<&Connection::on_event>(this), &watch_) != BH_OK)
    return false;
  owner_.want_check(since_ns_ + bounds_.request_ns);
  return true;
}

void Connection::set_events(std::uint32_t events) noexcept {
  if (events == events_) return;
  events_ = events;
  host_.modify(watch_, events);
}

void Connection::doom(bool too_slow) noexcept {
  if (doomed_) return;
  doomed_ = true;
  set_events(0);
  owner_.on_doomed(*this, too_slow);
}

void Connection::on_event(std::uint32_t events) noexcept {
  if ((events & BH_FD_WRITE) != 0 && !doomed_) flush();
  if (!doomed_) {
    if ((events & BH_FD_READ) != 0) {
      on_readable();
    } else if ((events & BH_FD_ERROR) != 0) {
      doom();
    }
  }
  owner_.on_event_end();
}

void Connection::on_readable() {
  std::span<char> room = mode_ == Mode::reading ? feed_.room() : std::span<char>{};
  const bool direct = !room.empty();
  if (!direct) room = owner_.scratch();
  const ssize_t n = ::recv(fd_, room.data(), room.size(), 0);
  if (n < 0) {
    if (errno != EAGAIN && errno != EINTR) doom();
    return;
  }
  if (n == 0) {
    // A peer that has closed only its sending side still receives the last response.
    if (mode_ == Mode::closing) return set_events(BH_FD_WRITE);
    return doom();
  }
  const auto got = static_cast<std::size_t>(n);
  if (!direct) return received({room.data(), got});
  if (feed_.filled(got) == RequestFeed::Result::request) hand_out();
}

void Connection::received(std::string_view bytes) {
  if (mode_ == Mode::closing || mode_ == Mode::lingering) return;  // input is discarded
  if (mode_ == Mode::reading) {
    consume(bytes);
  } else {
    stash(bytes);
  }
}

void Connection::consume(std::string_view in) {
  while (!in.empty() && mode_ == Mode::reading && !doomed_) {
    switch (feed_.feed(in)) {
      case RequestFeed::Result::request:
        hand_out();
        break;
      case RequestFeed::Result::more:
        return on_partial();
      case RequestFeed::Result::error:
        mode_ = Mode::busy;
        return owner_.on_refused(*this, feed_.status());
    }
  }
  if (!in.empty() && (mode_ == Mode::busy || mode_ == Mode::streaming)) stash(in);
}

void Connection::on_partial() {
  if (!timed_) {
    timed_ = true;
    since_ns_ = host_.now_ns();
    owner_.want_check(since_ns_ + bounds_.request_ns);
  }
  if (!feed_.head_known() || reply.admitted) return;
  mode_ = Mode::busy;
  if (!owner_.on_head(*this, feed_)) return feed_.next();  // already answered
  mode_ = Mode::reading;
  if (feed_.head().expects_continue && feed_.head().minor == 1) {
    const std::string_view text = http_codec::continue_head;
    iovec part{const_cast<char *>(text.data()), text.size()};
    write(&part, 1);
  }
}

void Connection::hand_out() {
  mode_ = Mode::busy;
  timed_ = false;
  served_ = true;
  since_ns_ = last_write_ns_ = host_.now_ns();
  owner_.want_check(last_write_ns_ + bounds_.quiet_ns);
  owner_.on_request(*this, feed_);
  feed_.next();
}

void Connection::stash(std::string_view bytes) {
  if (!backlog_.append(bytes)) return doom();
  // Stops reading, so the kernel buffers any further bytes. Reading resumes after the response.
  if (backlog_.size() > max_backlog) set_events(events_ & ~static_cast<std::uint32_t>(BH_FD_READ));
}

void Connection::resume() {
  if (mode_ != Mode::reading || doomed_ || backlog_.empty()) return;
  const ByteBuffer bytes = std::move(backlog_);
  set_events(events_ | BH_FD_READ);
  consume(bytes.view());
}

bool Connection::write(iovec *parts, std::size_t count) {
  if (doomed_) return false;
  std::size_t done = 0;
  if (queue_.empty()) {
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t n = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
      doom();
      return false;
    }
    done = n > 0 ? static_cast<std::size_t>(n) : 0;
    if (mode_ == Mode::streaming) last_write_ns_ = host_.now_ns();
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view part(static_cast<const char *>(parts[i].iov_base), parts[i].iov_len);
    const std::size_t skip = std::min(done, part.size());
    done -= skip;
    if (skip == part.size()) continue;
    if (unsent() + part.size() - skip > bounds_.queue_bytes || !queue_.append(part.substr(skip))) {
      doom(true);
      return false;
    }
  }
  if (!queue_.empty() && (events_ & BH_FD_WRITE) == 0) {
    last_write_ns_ = host_.now_ns();
    set_events(events_ | BH_FD_WRITE);
    owner_.want_check(last_write_ns_ + bounds_.stall_ns);
  }
  return true;
}

void Connection::flush() {
  const std::string_view rest = queue_.view().substr(sent_);
  const ssize_t n = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL);
  if (n < 0) {
    if (errno != EAGAIN && errno != EINTR) doom();
    return;
  }
  last_write_ns_ = host_.now_ns();
  sent_ += static_cast<std::size_t>(n);
  if (sent_ == queue_.size()) {
    queue_.clear();
    sent_ = 0;
    set_events(events_ & ~static_cast<std::uint32_t>(BH_FD_WRITE));
    if (mode_ == Mode::closing) linger();
  } else if (sent_ > queue_.size() / 2 && sent_ > (1u << 20)) {
    queue_.drop_front(sent_);
    sent_ = 0;
  }
}

void Connection::finish_answer() {
  if (doomed_) return;
  since_ns_ = host_.now_ns();
  timed_ = false;
  const bool persistent = reply.persistent;
  reply.admitted = false;
  attached = {};
  if (!persistent) {
    mode_ = Mode::closing;
    backlog_.clear();
    set_events(events_ | BH_FD_READ);
    if (queue_.empty()) linger();
    return;
  }
  mode_ = Mode::reading;
  if (!backlog_.empty()) owner_.on_ready(*this);
}

// Closes the sending side and reads until the peer closes the connection. If the socket were closed
// immediately, the kernel would respond to further input with a reset, and the peer could lose the
// last response.
void Connection::linger() noexcept {
  ::shutdown(fd_, SHUT_WR);
  mode_ = Mode::lingering;
  since_ns_ = host_.now_ns();
  owner_.want_check(since_ns_ + bounds_.linger_ns);
}

Connection::Use Connection::use() const noexcept {
  switch (mode_) {
    case Mode::reading:
      if (reply.admitted) return Use::receiving;
      if (!served_) return Use::silent;
      return timed_ ? Use::receiving : Use::idle;
    case Mode::lingering:
      return Use::silent;
    default:
      return Use::answering;
  }
}

std::uint64_t Connection::check(std::uint64_t now_ns) {
  std::uint64_t due = UINT64_MAX;
  if (doomed_) return due;
  if (!queue_.empty()) {
    due = last_write_ns_ + bounds_.stall_ns;
    if (due <= now_ns) {
      doom(true);
      return UINT64_MAX;
    }
  }
  std::uint64_t next = UINT64_MAX;
  switch (mode_) {
    case Mode::reading:
      next = since_ns_ + (timed_ || !served_ ? bounds_.request_ns : bounds_.keep_alive_ns);
      if (next > now_ns) break;
      if (!timed_) {
        doom();  // idle, or nothing was ever received
        return UINT64_MAX;
      }
      mode_ = Mode::busy;
      owner_.on_refused(*this, 408);
      feed_.next();
      return now_ns + bounds_.linger_ns;
    case Mode::busy:
    case Mode::streaming:
      next = last_write_ns_ + bounds_.quiet_ns;
      if (next > now_ns) break;
      if (queue_.empty()) owner_.on_quiet(*this);
      last_write_ns_ = queue_.empty() ? now_ns : last_write_ns_;
      next = now_ns + bounds_.quiet_ns;
      break;
    case Mode::closing:
      break;
    case Mode::lingering:
      next = since_ns_ + bounds_.linger_ns;
      if (next <= now_ns) doom();
      break;
  }
  return std::min(due, next);
}

}  // namespace transport_http
