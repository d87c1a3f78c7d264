#include "transport-vsock/endpoint.hpp"

#include <bulkhead/cpp/text.hpp>

#include <unistd.h>

#include <algorithm>

namespace transport_vsock {
namespace {

// Returns true if allow_uids contains users other than root and the gateway's user. In this case,
// all users must have access to the socket file, and accepted() checks the list.
bool names_other_users(const Config &config) {
  return config.allow_uids && std::ranges::any_of(*config.allow_uids, [](std::uint32_t uid) {
           return uid != 0 && uid != ::geteuid();
         });
}

}  // namespace

Endpoint::Endpoint(const bh::Host &plugin_host, const bh_host_transport *up, const Config &settings)
    : ConnectionOwner(plugin_host, up, settings),
      listener_(plugin_host, [this](int fd, const sockaddr_storage &peer) { accepted(fd, peer); }),
      dialer_(plugin_host, alive_,
              [this](int fd, std::string_view early) { add(fd, config.dial, {}, early); }),
      check_ms_(std::clamp<std::uint64_t>(
          std::min(settings.sniff_timeout_ms, settings.write_timeout_ms) / 8, 5, 500)) {}

Endpoint::~Endpoint() {
  stop();
}

bh_status Endpoint::listen(bh_error *error) {
  Address address;
  if (parse_handoff(config.handoff, &handoff_)) {
    if (const bh_status s = will_dial(host, handoff_, error); s != BH_OK) return s;
  }
  if (parse_dial(config.dial, &address)) {
    if (const bh_status s = will_dial(host, address, error); s != BH_OK) return s;
  }
  if (parse_listen(config.listen, &address)) {
    using Reach = stream_listener::StreamListener::Reach;
    const Reach reach = names_other_users(config) ? Reach::everybody : Reach::own_user;
    const bh_status s = listener_.open(address.raw, address.size, config.listen, error, reach);
    if (s != BH_OK) return s;
  }
  const bh_status s = host.post(bh::callback<&Endpoint::begin>(this));
  return s == BH_OK ? s : bh::fail(error, s, "the host's queue is full");
}

// Runs on the reactor thread, in which SIGPIPE must be blocked.
void Endpoint::begin() {
  stdio_lines::block_pipe_signal();
  Address address;
  if (!stopped_ && parse_dial(config.dial, &address)) {
    dialer_.start(address, config.dial, transport->limits->connect_timeout_ms);
  }
}

void Endpoint::stop_accepting() noexcept {
  listener_.close();
  dialer_.stop();
}

void Endpoint::stop() noexcept {
  if (std::exchange(stopped_, true)) return;
  stdio_lines::block_pipe_signal();  // the last flush may run on another thread
  stop_accepting();
  *alive_ = false;
  host.timer_cancel(check_timer_);
  for (const auto &connection : connections_) {
    connection->flush();
    if (connection->session() != 0) {
      transport->session_close(host.ctx(), connection->session(), BH_SESSION_GONE);
    }
  }
  by_session_.clear();
  doomed_.clear();
  unflushed_.clear();
  connections_.clear();
  splices_.clear();
}

// ---- accepting ---------------------------------------------------------------------------------

void Endpoint::accepted(int fd, const sockaddr_storage &peer) {
  std::uint32_t id = 0;
  std::string name = peer_name(fd, peer, &id);
  if (!allowed(peer, id)) {
    const bool vsock = peer.ss_family == AF_VSOCK;
    return refuse(fd, counters.refused, not_listed_,
                  name + " is not in " + (vsock ? "allow_cids" : "allow_uids"));
  }
  if (connections_of(id) >= config.max_connections_per_peer) {
    return refuse(fd, counters.too_many, too_many_of_peer_,
                  name + " already has " + std::to_string(config.max_connections_per_peer) +
                      " connections; raise max_connections_per_peer to allow more");
  }
  add(fd, std::move(name), id, {});
}

// Takes ownership of the descriptor and closes it.
void Endpoint::refuse(int fd, bh_metric counter, LogLimiter &limiter, const std::string &why) {
  counters.add(counter);
  ::close(fd);
  if (!limiter.due(host.now_ns())) return;
  host.log(BH_LOG_WARN, "a connection was rejected: " + why + limiter.suppressed());
}

bool Endpoint::allowed(const sockaddr_storage &peer, std::uint32_t id) const {
  const auto &list = peer.ss_family == AF_VSOCK ? config.allow_cids : config.allow_uids;
  if (!list) return true;
  return id != unknown_id && std::find(list->begin(), list->end(), id) != list->end();
}

// A linear search is sufficient: there are rarely more than a few hundred connections, and the
// search runs once per connection.
std::size_t Endpoint::connections_of(std::uint32_t peer) const {
  std::size_t n = static_cast<std::size_t>(std::ranges::count(handing_off_, peer));
  for (const auto &c : connections_) n += !c->doomed() && !c->from_dialer && c->peer_id == peer;
  for (const auto &s : splices_) n += s->peer_id == peer;
  return n;
}

// If the connection is from the dialer, there is no `id`.
void Endpoint::add(int fd, std::string peer, std::optional<std::uint32_t> id,
                   std::string_view early) {
  const bool from_dialer = !id.has_value();
  counters.add(counters.connections);
  if (connections_.size() + splices_.size() + handing_off_.size() >= config.max_connections) {
    refuse(fd, counters.too_many, too_many_,
           "all guests together have " + std::to_string(config.max_connections) +
               " connections; raise max_connections to allow more");
    if (from_dialer) dialer_.connection_ended();
    return;
  }
  auto connection = std::make_unique<Connection>(*this, fd, std::move(peer));
  Connection &c = *connection;
  c.index = connections_.size();
  c.from_dialer = from_dialer;
  c.peer_id = id.value_or(unknown_id);
  if (!c.start()) {
    counters.add(counters.error);
    if (from_dialer) dialer_.connection_ended();
    return;
  }
  connections_.push_back(std::move(connection));
  if (early.empty()) return;
  c.received(early);
  on_unflushed(c);
}

void Endpoint::on_session(Connection &connection, bh_session session) {
  by_session_[session] = &connection;
}

// ---- from the host -----------------------------------------------------------------------------

bh_status Endpoint::send(const bh_outgoing &message) {
  const auto at = by_session_.find(message.session);
  return at == by_session_.end() ? bh_status{BH_STALE} : at->second->send(message);
}

void Endpoint::session_ended(bh_session session) noexcept {
  const auto at = by_session_.find(session);
  if (at == by_session_.end()) return;
  Connection &connection = *at->second;
  by_session_.erase(at);
  connection.session_ended();
}

// ---- end of an event or event loop iteration ---------------------------------------------------

void Endpoint::on_unflushed(Connection &connection) {
  if (connection.unflushed) return;
  connection.unflushed = true;
  unflushed_.push_back(&connection);
  turn_end_wanted();
}

void Endpoint::on_doomed(Connection &connection) noexcept {
  doomed_.push_back(&connection);
  turn_end_wanted();
}

void Endpoint::on_too_much_unsent() {
  Connection *fullest = nullptr;
  for (const auto &c : connections_) {
    if (fullest == nullptr || c->unsent() > fullest->unsent()) fullest = c.get();
  }
  if (fullest != nullptr) fullest->too_slow();
}

void Endpoint::turn_end_wanted() noexcept {
  if (std::exchange(deferred_, true) || stopped_) return;
  host.defer(bh::callback<&Endpoint::end_of_turn>(this));
}

void Endpoint::end_of_turn() {
  deferred_ = false;
  for (Connection *connection : std::exchange(unflushed_, {})) {
    connection->unflushed = false;
    if (!connection->doomed()) connection->flush();
  }
  settle();
}

void Endpoint::settle() {
  while (!doomed_.empty()) {
    for (Connection *connection : std::exchange(doomed_, {})) destroy(*connection);
  }
}

void Endpoint::destroy(Connection &connection) noexcept {
  const bh_session session = connection.session();
  const bool from_dialer = connection.from_dialer;
  std::erase(unflushed_, &connection);
  by_session_.erase(session);
  std::swap(connections_[connection.index], connections_.back());
  connections_[connection.index]->index = connection.index;
  connections_.pop_back();
  if (session != 0) transport->session_close(host.ctx(), session, BH_SESSION_GONE);
  if (from_dialer) dialer_.connection_ended();
}

// ---- time-outs ---------------------------------------------------------------------------------

void Endpoint::want_checks() noexcept {
  if (check_timer_ != 0 || stopped_) return;
  check_timer_ = host.timer_start(check_ms_, bh::callback<&Endpoint::check_all>(this));
}

// Runs only while a time-out is pending.
void Endpoint::check_all() {
  check_timer_ = 0;
  bool again = false;
  const std::uint64_t now = host.now_ns();
  for (const auto &connection : connections_) again = connection->check(now) || again;
  settle();
  if (again) want_checks();
}

// ---- hand-off ----------------------------------------------------------------------------------

void Endpoint::on_other(Connection &connection, std::string_view bytes) {
  const std::uint32_t peer = connection.peer_id;
  const auto guest = std::make_shared<Socket>(connection.release());
  const auto done = [this, peer, guest, early = std::string(bytes)](Socket service,
                                                                    const std::string &error) {
    handing_off_.erase(std::ranges::find(handing_off_, peer));
    if (service.get() >= 0) return splice(std::move(*guest), peer, std::move(service), early);
    handoff_failed(error);
  };
  if (dial(host, handoff_, alive_, done) == BH_OK) {
    handing_off_.push_back(peer);
  } else {
    handoff_failed("the host has no free thread");
  }
}

// Only the first failure is logged until a hand-off succeeds, because guests can cause any number
// of failures.
void Endpoint::handoff_failed(const std::string &why) {
  counters.add(counters.handoff_failed);
  if (handoff_failures_++ != 0) return;
  host.log(BH_LOG_WARN, "cannot hand a connection off to " + config.handoff + ": " + why +
                            "; further failures are only counted (vsock.handoff_failed)");
}

void Endpoint::splice(Socket guest, std::uint32_t peer, Socket service, std::string_view early) {
  auto made = std::make_unique<Splice>(
      host, guest.release(), service.release(), early,
      Splice::Events{on_service_reached, on_splice_ended, static_cast<void *>(this)});
  if (!made->start()) return handoff_failed("the host cannot watch the sockets");
  made->peer_id = peer;
  made->index = splices_.size();
  splices_.push_back(std::move(made));
}

void Endpoint::on_service_reached(void *arg) {
  auto &self = *static_cast<Endpoint *>(arg);
  self.counters.add(self.counters.handed_off);
  const std::uint64_t failed = std::exchange(self.handoff_failures_, 0);
  if (failed == 0) return;
  self.host.log(BH_LOG_INFO, "connections are handed off to " + self.config.handoff + " again; " +
                                 std::to_string(failed) + " were lost before");
}

void Endpoint::on_splice_ended(void *arg, Splice &splice) {
  auto &self = *static_cast<Endpoint *>(arg);
  if (const int error = splice.unreached(); error != 0) {
    self.handoff_failed("cannot connect: " + bh::error_name(error));
  }
  auto &splices = self.splices_;
  const std::size_t i = splice.index;
  std::swap(splices[i], splices.back());
  splices[i]->index = i;
  splices.pop_back();
}

}  // namespace transport_vsock
