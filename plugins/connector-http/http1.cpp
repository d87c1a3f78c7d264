#include "http1.hpp"

#include <algorithm>
#include <cstring>

#include "connection.hpp"

namespace connector_http {
namespace {

constexpr std::uint64_t pool_sweep_ms = 15'000;

template <class T>
void remove_one(std::vector<T *> *list, T *what) noexcept {
  const auto it = std::find(list->begin(), list->end(), what);
  if (it == list->end()) return;
  *it = list->back();
  list->pop_back();
}

}  // namespace

class Http1Route final : public HttpRoute {
 public:
  Http1Route(Http1Client &client, Origin &origin, std::uint64_t connect_timeout_ms)
      : client_(client), origin_(origin), connect_timeout_ms_(connect_timeout_ms) {
    ++origin_.routes;
  }
  ~Http1Route() override { client_.release_route(origin_); }

  bh_status start(const HttpRequest &request, HttpSink &sink, HttpCall **out,
                  bh_error *error) override {
    // A request of any size is accepted if no other request has unsent bytes.
    if (unsent_ > 0 && unsent_ + request.body_bytes > client_.limits_.write_queue_bytes) {
      return bh::fail(error, BH_E_LIMIT, origin_.key + ": the server reads too slowly");
    }
    while (!request.fresh_connection) {
      Connection *connection = client_.take_idle(origin_);
      if (connection == nullptr) break;
      if (connection->send(request, sink, &unsent_)) return *out = connection, BH_OK;
      client_.retire(connection);
    }
    if (origin_.open >= client_.limits_.connections_max) {
      return bh::fail(error, BH_E_LIMIT,
                      origin_.key + ": " + std::to_string(origin_.open) +
                          " connections are already open, the maximum");
    }
    auto connection = std::make_unique<Connection>(client_, origin_, connect_timeout_ms_);
    client_.all_.push_back(connection.get());
    ++origin_.open;
    ++client_.connects_;
    Connection *opened = connection.release();
    const bh_status status = opened->open(request, sink, &unsent_, error);
    if (status == BH_OK) *out = opened;  // on error, open() has retired the connection
    return status;
  }

  std::uint64_t unsent() const noexcept override { return unsent_; }

 private:
  Http1Client &client_;
  Origin &origin_;
  std::uint64_t connect_timeout_ms_;
  std::uint64_t unsent_ = 0;
};

Http1Client::Http1Client(const bh::Host &host, const Http1Limits &limits)
    : host_(host), limits_(limits), scratch_(new char[scratch_bytes]) {}

Http1Client::~Http1Client() {
  stop();
}

std::unique_ptr<HttpRoute> Http1Client::route(const Url &url, std::uint64_t connect_timeout_ms) {
  std::string key = url.host_port();
  auto &origin = origins_[key];
  if (origin == nullptr) {
    origin = std::make_unique<Origin>();
    origin->host = url.host;
    origin->port = url.port;
    origin->key = std::move(key);
    origin->literal = resolve_now(url.host, url.port, &origin->addresses);
  }
  return std::make_unique<Http1Route>(*this, *origin, connect_timeout_ms);
}

void Http1Client::release_route(Origin &origin) noexcept {
  if (--origin.routes > 0) return;
  const std::vector<Connection *> all = all_;
  for (Connection *connection : all) {
    if (&connection->origin_ == &origin) retire(connection);
  }
  if (origin.lookup != nullptr) origin.lookup->cancel();
  const std::string key = origin.key;
  origins_.erase(key);
}

Connection *Http1Client::take_idle(Origin &origin) {
  while (!origin.idle.empty()) {
    Connection *connection = origin.idle.back();
    if (connection->reusable(host_.now_ns())) {
      origin.idle.pop_back();
      return connection;
    }
    retire(connection);
  }
  return nullptr;
}

void Http1Client::put_idle(Connection *connection) {
  Origin &origin = connection->origin_;
  if (origin.idle.size() >= limits_.idle_max) return retire(connection);
  connection->watch_for(BH_FD_READ);
  origin.idle.push_back(connection);
  if (sweep_timer_ == 0) arm_sweep();
}

void Http1Client::retire(Connection *connection) noexcept {
  if (connection->state_ == Connection::State::closed) return;
  Origin &origin = connection->origin_;
  remove_one(&origin.idle, connection);
  remove_one(&origin.waiting, connection);
  remove_one(&all_, connection);
  --origin.open;
  connection->close();
  retired_.push_back(connection);
  if (deletion_pending_) return;
  deletion_pending_ = true;
  host_.defer(bh::callback<&Http1Client::delete_retired>(this));
}

void Http1Client::delete_retired() noexcept {
  deletion_pending_ = false;
  for (Connection *connection : retired_) delete connection;
  retired_.clear();
}

void Http1Client::arm_sweep() {
  sweep_timer_ = host_.timer_start(std::min(pool_sweep_ms, limits_.idle_ms),
                                   bh::callback<&Http1Client::sweep>(this));
}

// Closes expired idle connections. The timer keeps running while there are idle connections, so it
// need not be restarted for each call.
void Http1Client::sweep() {
  sweep_timer_ = 0;
  bool any = false;
  const std::uint64_t now = host_.now_ns();
  for (auto &[key, origin] : origins_) {
    const std::vector<Connection *> idle = origin->idle;
    for (Connection *connection : idle) {
      if (connection->expired(now, limits_.idle_ms)) retire(connection);
    }
    any = any || !origin->idle.empty();
  }
  if (any) arm_sweep();
}

// Moves the address that accepted the connection to the front of the list.
void Http1Client::prefer(Origin &origin, const Address &address) {
  const auto same = [&](const Address &a) {
    return a.size == address.size && std::memcmp(&a.storage, &address.storage, a.size) == 0;
  };
  const auto it = std::find_if(origin.addresses.begin(), origin.addresses.end(), same);
  if (it != origin.addresses.end()) std::rotate(origin.addresses.begin(), it, it + 1);
}

bool Http1Client::resolve(Origin &origin) {
  if (origin.lookup != nullptr) return true;
  origin.lookup =
      Lookup::start(host_, origin.host, origin.port,
                    [this, &origin](std::vector<Address> &&addresses, const std::string &why) {
                      resolved(origin, std::move(addresses), why);
                    });
  return origin.lookup != nullptr;
}

void Http1Client::resolved(Origin &origin, std::vector<Address> &&addresses,
                           const std::string &why) {
  origin.lookup = nullptr;
  origin.addresses = std::move(addresses);
  origin.resolved_ns = host_.now_ns();
  const std::vector<Connection *> waiting = std::exchange(origin.waiting, {});
  for (Connection *connection : waiting) {
    if (connection->state_ != Connection::State::resolving) continue;
    if (origin.addresses.empty()) {
      connection->fail(BH_E_UNAVAILABLE, "cannot resolve the name: " + why);
    } else {
      connection->connect_next();
    }
  }
}

std::uint32_t Http1Client::open() const noexcept {
  return static_cast<std::uint32_t>(all_.size());
}

void Http1Client::stop() noexcept {
  while (!all_.empty()) retire(all_.back());
  for (auto &[key, origin] : origins_) {
    if (origin->lookup != nullptr) origin->lookup->cancel();
    origin->lookup = nullptr;
  }
  host_.timer_cancel(sweep_timer_);
  for (Connection *connection : retired_) delete connection;
  retired_.clear();
}

}  // namespace connector_http
