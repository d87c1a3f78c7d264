#include "server.hpp"

#include <bulkhead/cpp/clock.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "room.hpp"

namespace transport_http {

namespace {

using bh::ns_per_ms;
constexpr std::uint64_t unfinished_bytes = 512ull << 20;  // limit for all incomplete requests

// Closes a connection. A pending response is replaced with an error. An event stream, however, ends
// without an error, because the client may resume it.
void give_up(Connection &c) {
  if (c.use() != Connection::Use::answering) return c.doom();
  const Attachment at = c.attached;
  c.reply.persistent = false;
  if (c.streaming()) {
    end_events(c);
  } else {
    respond_error(c, 503, -32000,
                  "Too many connections are waiting for responses: this connection was closed to "
                  "admit a new client, and its call may have run. Send fewer concurrent calls",
                  "Retry-After: 5\r\n");
  }
  c.attached = at;  // lost() needs it
  c.doom();
}

}  // namespace

Server::Server(const bh::Host &host, const bh_host_transport *transport, Config config)
    : host_(host),
      transport_(transport),
      resume_(host.ext<bh_host_resume>(BH_EXT_HOST_RESUME)),
      metrics_(host.ext<bh_host_metrics>(BH_EXT_HOST_METRICS)),
      config_(std::move(config)),
      guard_({}, 0, false),
      listener_(
          host, [this](int fd, const sockaddr_storage &peer) { accepted(fd, peer); },
          [this] { return make_room(); }),
      scratch_(std::make_unique_for_overwrite<char[]>(scratch_bytes)) {
  set_bounds();
  if (metrics_ == nullptr) return;
  const auto counter = [&](std::string_view name) {
    return metrics_->counter(host_.ctx(), bh::str(name));
  };
  events_dropped_ = counter("http.events_dropped");
  slow_dropped_ = counter("http.slow_connections_dropped");
  refused_ = counter("http.connections_refused");
  sessions_evicted_ = counter("http.sessions_evicted");
  connections_evicted_ = counter("http.connections_evicted");
}

Server::~Server() {
  stop();
}

void Server::set_bounds() {
  const bh_limits &limits = *transport_->limits;
  bounds_.feed.head_bytes =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(limits.header_bytes, 1024, 1u << 20));
  bounds_.feed.body_bytes = limits.message_bytes;
  body_budget_ = http_codec::BodyBudget(std::max(unfinished_bytes, 2 * limits.message_bytes));
  bounds_.feed.budget = &body_budget_;
  bounds_.queue_bytes = limits.write_queue_bytes;
  bounds_.stall_ns = limits.write_stall_ms * ns_per_ms;
  bounds_.request_ns = limits.request_read_ms * ns_per_ms;
  bounds_.quiet_ns = config_.keep_alive_ms * ns_per_ms;
  max_connections_ = limits.sessions * 2 + 64;
  eviction_ = Eviction(limits.sessions);
  const std::uint64_t smallest = std::min({limits.write_stall_ms, limits.request_read_ms,
                                           limits.session_idle_ms, config_.keep_alive_ms});
  sweep_min_ns_ = std::clamp<std::uint64_t>(smallest / 8, 5, 500) * ns_per_ms;
}

void Server::count(bh_metric metric, std::uint64_t n) const noexcept {
  if (metrics_ != nullptr && metric != 0) metrics_->add(host_.ctx(), metric, n);
}

bh_status Server::listen(std::string token, bh_error *error) {
  ListenAddress address;
  if (const bh_status s = ListenAddress::parse(config_.listen, address, error); s != BH_OK) {
    return s;
  }
  const bh_status opened = listener_.open(address.address, address.size, config_.listen, error);
  if (opened != BH_OK) return opened;
  const std::uint16_t port = port_of(listener_.bound());
  GuardConfig guard = config_.guard;
  guard.token = std::move(token);
  guard_ = Guard(std::move(guard), port, !address.loopback);
  endpoint_ = address.unix_path.empty() ? "http://" + to_text(listener_.bound()) + config_.path
                                        : "unix:" + address.unix_path;
  return BH_OK;
}

// Closes connections to free capacity. Returns false if no connection could be closed.
bool Server::make_room() {
  std::vector<Connection *> found = unused(connections_);
  if (found.empty()) found = of_largest_share(connections_);
  for (Connection *c : found) give_up(*c);
  count(connections_evicted_, found.size());
  settle();
  return !found.empty();
}

void Server::accepted(int fd, const sockaddr_storage &peer) {
  if (connections_.size() >= max_connections_ && !make_room()) {
    count(refused_);
    static constexpr std::string_view text =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n"
        "Connection: close\r\n\r\n";
    (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    ::close(fd);
    return;
  }
  auto connection = std::make_unique<Connection>(*this, host_, bounds_, fd, peer_text(fd, peer));
  connection->peer_key = peer_key(fd, peer);
  if (!connection->start()) return;
  connection->index = connections_.size();
  connections_.push_back(std::move(connection));
}

void Server::on_doomed(Connection &c, bool too_slow) noexcept {
  if (too_slow) count(slow_dropped_);
  doomed_.push_back(&c);
  settle_soon();
}

void Server::on_ready(Connection &c) noexcept {
  ready_.push_back(&c);
  settle_soon();
}

// Schedules settle() if the host is currently calling the plugin, for example in send(). Reactor
// events call settle() themselves when they end.
void Server::settle_soon() noexcept {
  if (!in_send_ || soon_ != 0 || stopped_) return;
  soon_ = host_.timer_start(0, bh::callback(this, [](Server &self) noexcept {
                              self.soon_ = 0;
                              self.settle();
                            }));
}

void Server::settle() {
  while (!doomed_.empty() || !ready_.empty() || !closing_.empty()) {
    for (const auto &[handle, how] : std::exchange(closing_, {})) {
      transport_->session_close(host_.ctx(), handle, how);
    }
    for (Connection *c : std::exchange(ready_, {})) {
      if (!stopped_) c->resume();
    }
    for (Connection *c : std::exchange(doomed_, {})) {
      lost(*c);
      destroy(*c);
    }
  }
  sessions_.reap();
}

void Server::destroy(Connection &c) noexcept {
  std::erase(ready_, &c);
  const std::size_t i = c.index;
  std::swap(connections_[i], connections_.back());
  connections_[i]->index = i;
  connections_.pop_back();
}

// Handles a broken connection. Up to revision 2025-11-25, a call is not cancelled when its
// connection breaks.
void Server::lost(Connection &c) {
  const Attachment at = std::exchange(c.attached, {});
  if (at.role == Attachment::Role::sessionless) return lost_sessionless(at.stream);
  if (at.session == nullptr || at.session->ended) return;
  Session &session = *at.session;
  session.last_used_ns = host_.now_ns();
  switch (at.role) {
    case Attachment::Role::none:
    case Attachment::Role::sessionless:
      return;
    case Attachment::Role::general:
      session.general = nullptr;
      break;
    case Attachment::Role::http_sse:
      session.general = nullptr;
      close_session(session);
      return;
    case Attachment::Role::post: {
      Stream *stream = session.find(at.stream);
      if (stream == nullptr) break;
      stream->connection = nullptr;
      if (stream->events && session.announced) break;  // the client may resume the stream
      session.erase(at.stream);
      transport_->stream_gone(host_.ctx(), session.handle, at.stream);
      // The session's ID has not been sent, so no client can use the session.
      if (!session.announced && !session.ended) close_session(session);
      break;
    }
  }
  want_check(session.last_used_ns + transport_->limits->session_idle_ms * ns_per_ms);
}

void Server::close_session(Session &session, std::uint32_t how) {
  if (session.ended) return;
  const bh_session handle = session.handle;
  end_streams(session, how);
  sessions_.forget(session);
  if (in_send_) {
    closing_.emplace_back(handle, how);
    settle_soon();
  } else {
    transport_->session_close(host_.ctx(), handle, how);
  }
}

// Takes handles because closing a session notifies the host, which may then close other sessions in
// the list.
void Server::close_sessions(const std::vector<bh_session> &handles) {
  for (const bh_session handle : handles) {
    if (Session *session = sessions_.find(handle)) close_session(*session);
  }
}

// Ends all streams of a session. Calls of an evicted session get status 503, because a client that
// gets 404 abandons its session. An evicted session is restored by its next request.
void Server::end_streams(Session &session, std::uint32_t how) {
  if (Connection *general = std::exchange(session.general, nullptr)) {
    general->attached = {};
    if (session.kind == Session::Kind::http_sse) general->reply.persistent = false;
    end_events(*general);
  }
  for (const Stream &stream : std::exchange(session.streams, {})) {
    if (stream.connection == nullptr) continue;
    stream.connection->attached = {};
    if (stream.events) {
      end_events(*stream.connection);
    } else if (how == BH_SESSION_EVICTED) {
      respond_error(*stream.connection, 503, -32000,
                    "Too many sessions are open: this call was ended to admit a new client's "
                    "session, and may have run. The session is restored at its next request",
                    "Retry-After: 5\r\n");
    } else {
      respond_error(*stream.connection, 404, -32001, "Session not found");
    }
  }
}

void Server::session_ended(bh_session handle) noexcept {
  Session *session = sessions_.find(handle);
  if (session == nullptr) return;
  const bool before = std::exchange(in_send_, true);
  end_streams(*session, BH_SESSION_GONE);
  sessions_.forget(*session);
  settle_soon();  // frees the session
  in_send_ = before;
}

void Server::want_check(std::uint64_t at_ns) noexcept {
  if (stopped_ || (sweep_ != 0 && sweep_at_ns_ <= at_ns)) return;
  host_.timer_cancel(sweep_);
  const std::uint64_t now = host_.now_ns();
  sweep_at_ns_ = std::max(at_ns, now + sweep_min_ns_);
  sweep_ = host_.timer_start((sweep_at_ns_ - now) / ns_per_ms + 1,
                             bh::callback(this, [](Server &self) noexcept {
                               self.sweep_ = 0;
                               self.sweep();
                             }));
}

// Enforces all time-outs. Runs only as often as the shortest time-out requires.
void Server::sweep() {
  const std::uint64_t now = host_.now_ns();
  std::uint64_t next = UINT64_MAX;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    next = std::min(next, connections_[i]->check(now));
  }
  next = std::min(next, sweep_sessions(now));
  settle();
  if (next != UINT64_MAX) want_check(std::max(next, now + sweep_min_ns_));
}

std::uint64_t Server::sweep_sessions(std::uint64_t now_ns) {
  const std::uint64_t idle_ns = transport_->limits->session_idle_ms * ns_per_ms;
  std::uint64_t next = UINT64_MAX;
  std::vector<bh_session> idle;
  sessions_.for_each([&](Session &session) {
    if (now_ns > event_age_ns) session.ring.expire(now_ns - event_age_ns);
    const std::uint64_t oldest = session.ring.oldest_ns();
    if (oldest != UINT64_MAX) next = std::min(next, oldest + event_age_ns);
    if (session.in_use()) return;
    if (now_ns - session.last_used_ns >= idle_ns) {
      idle.push_back(session.handle);
    } else {
      next = std::min(next, session.last_used_ns + idle_ns);
    }
  });
  close_sessions(idle);
  return next;
}

void Server::drain() noexcept {
  draining_ = true;
  listener_.close();
}

bool Server::sends_after_drain() const noexcept {
  return draining_ && std::any_of(connections_.begin(), connections_.end(),
                                  [](const auto &c) { return c->unsent() != 0; });
}

void Server::stop() noexcept {
  if (stopped_) return;
  listener_.close();
  stopped_ = true;
  std::vector<bh_session> all;
  sessions_.for_each([&](Session &session) { all.push_back(session.handle); });
  close_sessions(all);
  end_sessionless();
  settle();
  host_.timer_cancel(sweep_);
  host_.timer_cancel(soon_);
  doomed_.clear();
  ready_.clear();
  connections_.clear();
  sessions_.reap();
}

}  // namespace transport_http
