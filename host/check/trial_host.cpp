#include "check/trial_host.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "bulkhead/cpp/basics.hpp"

namespace bulkhead::check {
namespace {

constexpr std::size_t most_kept = 100'000;

template <class T>
void keep(std::vector<T> *to, T value) {
  if (to->size() < most_kept) to->push_back(std::move(value));
}

}  // namespace

TrialHost::TrialHost() : limits_(bh::testing::limits()) {
  base_.user = this;
  make_guards();
  make_tools();
  make_policy();
  make_telemetry();
  make_connector();
  make_transport();
  make_http();
  make_listen();
  table_ = *base_.host();
}

void TrialHost::be_newer() noexcept {
  table_.size = sizeof larger_;
  table_.abi_minor += 7;
  // Members that a plugin of this version does not know.
  for (std::uint64_t &member : larger_.later) member = ~std::uint64_t{0};
  // A plugin must not read members that it does not know, so none follow these tables.
  for (std::uint32_t *size :
       {&executor_.size, &fd_.size, &tools_.size, &event_.size, &policy_.size, &telemetry_.size,
        &connector_.size, &transport_.size, &http_.size, &listen_.size}) {
    *size += sizeof larger_.later;
  }
}

void TrialHost::forbid(std::string function) {
  const std::lock_guard lock(mutex_);
  forbidden_ = std::move(function);
}

void TrialHost::allow() {
  forbid({});
}

void TrialHost::used(const char *function) {
  std::string where;
  {
    const std::lock_guard lock(mutex_);
    where = forbidden_;
  }
  if (!where.empty()) fault("it calls " + std::string(function) + " in " + where);
}

void TrialHost::fault(std::string text) {
  const std::lock_guard lock(mutex_);
  if (std::find(faults_.begin(), faults_.end(), text) == faults_.end()) {
    keep(&faults_, std::move(text));
  }
}

std::vector<TrialHost::Completed> TrialHost::completed() const {
  const std::lock_guard lock(mutex_);
  return completed_;
}
std::size_t TrialHost::completions(bh_call call) const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(completed_.begin(), completed_.end(),
                    [&](const Completed &one) { return one.call == call; }));
}
std::vector<TrialHost::Decided> TrialHost::decided() const {
  const std::lock_guard lock(mutex_);
  return decided_;
}
std::vector<std::uint64_t> TrialHost::committed() const {
  const std::lock_guard lock(mutex_);
  return committed_;
}
std::size_t TrialHost::attempts() const {
  const std::lock_guard lock(mutex_);
  return attempts_;
}
std::vector<std::string> TrialHost::faults() const {
  std::vector<std::string> all = base_.faults();
  const std::lock_guard lock(mutex_);
  all.insert(all.end(), faults_.begin(), faults_.end());
  return all;
}

// Wraps the functions that must not be called inside [no-host] functions.
void TrialHost::make_guards() {
  const bh_host &host = *base_.host();
  real_executor_ =
      static_cast<const bh_host_executor *>(host.get_ext(host.ctx, BH_EXT_HOST_EXECUTOR));
  real_fd_ = static_cast<const bh_host_fd *>(host.get_ext(host.ctx, BH_EXT_HOST_FD));
  executor_ = *real_executor_;
  executor_.now_ns = [](void *c) {
    of(c).used("now_ns");
    return of(c).real_executor_->now_ns(c);
  };
  executor_.post = [](void *c, void (*fn)(void *), void *arg) {
    of(c).used("post");
    return of(c).real_executor_->post(c, fn, arg);
  };
  executor_.defer = [](void *c, void (*fn)(void *), void *arg) {
    of(c).used("defer");
    of(c).real_executor_->defer(c, fn, arg);
  };
  executor_.timer_start = [](void *c, std::uint64_t ms, void (*fn)(void *), void *arg) {
    of(c).used("timer_start");
    return of(c).real_executor_->timer_start(c, ms, fn, arg);
  };
  executor_.run_blocking = [](void *c, void (*work)(void *), void (*done)(void *), void *arg) {
    of(c).used("run_blocking");
    return of(c).real_executor_->run_blocking(c, work, done, arg);
  };
  fd_ = *real_fd_;
  fd_.watch = [](void *c, std::int32_t fd, std::uint32_t events,
                 void (*fn)(void *, std::int32_t, std::uint32_t), void *arg, bh_watch *out) {
    of(c).used("watch");
    return of(c).real_fd_->watch(c, fd, events, fn, arg, out);
  };
  base_.add_ext(BH_EXT_HOST_EXECUTOR, &executor_);
  base_.add_ext(BH_EXT_HOST_FD, &fd_);
}

bh_status TrialHost::complete(bh_call call, const bh_result *result) {
  used("complete");
  bool valid = result != nullptr && BH_HAS(bh_result, result, json);
  if (!valid) {
    fault("it passes a bh_result without a size to complete()");
    return BH_E_INVALID;
  }
  const bh::Buf json(result->json);
  const std::lock_guard lock(mutex_);
  ++attempts_;
  if (completion != BH_OK) return completion;
  keep(&completed_, Completed{call, result->kind, std::string(json.view())});
  return BH_OK;
}

void TrialHost::make_tools() {
  tools_.size = sizeof tools_;
  tools_.complete = [](void *c, bh_call call, const bh_result *result) {
    return of(c).complete(call, result);
  };
  tools_.progress = [](void *c, bh_call, const bh_progress *) { of(c).used("progress"); };
  tools_.list_changed = [](void *c, const bh_list_info *) { of(c).used("list_changed"); };
  tools_.resource_updated = [](void *c, bh_str) { of(c).used("resource_updated"); };
  base_.add_ext(BH_EXT_HOST_TOOLS, &tools_);
  event_.size = sizeof event_;
  event_.event = [](void *c, bh_call, std::uint32_t, bh_str) { of(c).used("event"); };
  base_.add_ext(BH_EXT_HOST_EVENT, &event_);
}

void TrialHost::make_policy() {
  policy_.size = sizeof policy_;
  policy_.decided = [](void *c, std::uint64_t exchange, const bh_verdict *verdict) -> bh_status {
    of(c).used("decided");
    const std::lock_guard lock(of(c).mutex_);
    keep(&of(c).decided_, Decided{exchange, verdict == nullptr ? 0 : verdict->verdict, 0, false});
    return BH_OK;
  };
  policy_.changed = [](void *c) { of(c).used("changed"); };
  policy_.filtered = [](void *c, std::uint64_t exchange, std::uint32_t listed) -> bh_status {
    of(c).used("filtered");
    const std::lock_guard lock(of(c).mutex_);
    keep(&of(c).decided_, Decided{exchange, 0, listed, true});
    return BH_OK;
  };
  base_.add_ext(BH_EXT_HOST_POLICY, &policy_);
}

void TrialHost::make_telemetry() {
  telemetry_.size = sizeof telemetry_;
  telemetry_.committed = [](void *c, std::uint64_t below) {
    of(c).used("committed");
    const std::lock_guard lock(of(c).mutex_);
    keep(&of(c).committed_, below);
  };
  base_.add_ext(BH_EXT_HOST_TELEMETRY, &telemetry_);
}

void TrialHost::make_connector() {
  connector_.size = sizeof connector_;
  connector_.limits = &limits_;
  connector_.message = [](void *c, bh_lane, std::uint64_t, bh_str) { ++of(c).lane_messages; };
  connector_.exchange_failed = [](void *c, bh_lane, std::uint64_t, const bh_lane_failure *) {
    ++of(c).failed_exchanges;
  };
  connector_.lane_down = [](void *c, bh_lane lane, const bh_lane_failure *) {
    keep(&of(c).lanes_down, lane);
  };
  connector_.lane_closed = [](void *c, bh_lane lane) { keep(&of(c).lanes_closed, lane); };
  base_.add_ext(BH_EXT_HOST_CONNECTOR, &connector_);
}

// No client connects during a check.
void TrialHost::make_transport() {
  transport_.size = sizeof transport_;
  transport_.limits = &limits_;
  transport_.session_open = [](void *, const bh_peer *, bh_session *, bh_error *error) {
    return bh::fail(error, BH_E_UNAVAILABLE, "this host accepts no sessions");
  };
  transport_.stream_gone = [](void *, bh_session, std::uint64_t) {};
  transport_.session_close = [](void *, bh_session, std::uint32_t) {};
  transport_.check_revision = [](void *, bh_session, bh_str) -> bh_status { return BH_OK; };
  transport_.finished = [](void *) {};
  transport_.set_process_name = [](void *, bh_session, bh_str) {};
  transport_.deliver = [](void *, const bh_incoming *, bh_delivery *) -> bh_status {
    return BH_E_UNAVAILABLE;
  };
  base_.add_ext(BH_EXT_HOST_TRANSPORT, &transport_);
}

// Requests cannot be sent.
void TrialHost::make_http() {
  http_.size = sizeof http_;
  http_.start = [](void *c, const bh_http_request *, const bh_http_handler *, void *, bh_http_id *,
                   bh_error *error) {
    of(c).used("http start");
    return bh::fail(error, BH_E_UNAVAILABLE, "this host has no network access");
  };
  http_.cancel = [](void *, bh_http_id) -> bh_status { return BH_STALE; };
  base_.add_ext(BH_EXT_HOST_HTTP, &http_);
}

bh_status TrialHost::open_listener(const void *address, std::uint32_t size, std::int32_t *fd,
                                   bh_error *error) {
  used("open");
  sa_family_t family = AF_UNSPEC;
  if (address != nullptr && size >= sizeof family) std::memcpy(&family, address, sizeof family);
  const int socket = listeners_ == nullptr ? -1 : listeners_->of(family);
  *fd = socket < 0 ? -1 : ::fcntl(socket, F_DUPFD_CLOEXEC, 3);
  return *fd >= 0 ? BH_OK
                  : bh::fail(error, BH_E_UNAVAILABLE, "this host has no socket for this address");
}

// The sockets have other addresses than the requested ones.
void TrialHost::make_listen() {
  listen_.size = sizeof listen_;
  listen_.open = [](void *c, const void *address, std::uint32_t size, bh_str, std::int32_t *fd,
                    bh_error *error) { return of(c).open_listener(address, size, fd, error); };
  listen_.open_for_all = listen_.open;
  listen_.will_dial = [](void *c, const void *, std::uint32_t, bh_error *error) {
    of(c).used("will_dial");
    return bh::fail(error, BH_E_DENIED, "this host allows no connections to local addresses");
  };
  listen_.dial = [](void *c, const void *, std::uint32_t, std::int32_t *, bh_error *error) {
    of(c).used("dial");
    return bh::fail(error, BH_E_DENIED, "this host allows no connections to local addresses");
  };
  base_.add_ext(BH_EXT_HOST_LISTEN, &listen_);
}

}  // namespace bulkhead::check
