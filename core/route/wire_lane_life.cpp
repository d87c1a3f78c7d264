// The life cycle of a connection: start, stop, loss and reconnection.
#include <algorithm>
#include <utility>

#include "base/jitter.hpp"
#include "route/lane_host.hpp"
#include "route/upstream.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
namespace {

// After this many consecutive losses or failed starts, a call no longer starts the server.
constexpr std::uint32_t max_crashes = 3;
// A connection that has lasted this long ends a series of failures, so the lane reconnects
// immediately after the next loss.
constexpr std::uint64_t steady_ns = 10'000'000'000u;

}  // namespace

// ---- opening ----------------------------------------------------------------------------------

void WireLane::opened_with(const ServerEdge &edge, ServerEdge::Opened opened) {
  server_caps_ = opened.caps;
  instructions_ = std::move(opened.instructions);
  const bh_lane handle =
      connection_.handle();  // a connector may lose the connection inside any call
  connection_.opened(opened.revision);
  if (connection_.handle() != handle) return;
  const bh_str confirmation = bh::str(edge.confirmation());
  if (confirmation.n != 0) send(BH_LANE_NOTIFICATION, &confirmation, 1);
  // Subscribe before reading the lists, so that no change is missed after a list has been read. See
  // changes_missed() for connections that do not keep the order of messages.
  if (connection_.handle() == handle && edge.stateless())
    subscriptions_.listening().start(server_caps_);
  if (connection_.handle() == handle) lists_.start_all();
}

// ---- lazy servers ------------------------------------------------------------------------------

bool WireLane::lazy() const {
  return upstream_.def().lazy;
}

bool WireLane::unknown() const {
  return lazy() && !listed_ && may_start_for_call();
}

// Returns true if a call may start the server. This is the case if there is no connection because
// the server is lazy and was not needed, or because the connection was lost recently. After several
// consecutive losses, a call no longer starts the server, because the call itself may be the cause.
bool WireLane::may_start_for_call() const {
  if (connection_.handle() != 0 || draining_ || failures_ >= max_crashes) return false;
  return sleeps() || (state_ == LaneState::waiting && (lazy() || restarts_ > 0));
}

void WireLane::start_for_call() {
  host_.reactor().timer_cancel(retry_timer_);
  retry_timer_ = 0;
  connect();
}

void WireLane::watch_idleness() {
  last_use_ns_ = host_.reactor().now_ns();
  if (!lazy() || upstream_.def().idle_stop_ms == 0 || idle_timer_ != 0) return;
  idle_timer_ = host_.reactor().timer_start(this, upstream_.def().idle_stop_ms,
                                            bh::callback(this, [](WireLane &self) {
                                              self.idle_timer_ = 0;
                                              self.stop_if_idle();
                                            }));
}

// Stops the server if it has been idle for long enough. Its items stay listed, so clients do not
// notice that it has stopped.
void WireLane::stop_if_idle() {
  if (state_ != LaneState::ready || !lazy()) return;
  const std::uint64_t bound = upstream_.def().idle_stop_ms * 1'000'000u;
  const std::uint64_t now = host_.reactor().now_ns();
  const bool used =
      in_flight != 0 || tasks_.open_cancels() != 0 || !queue_.empty() || !watches.empty();
  if (used) last_use_ns_ = now;
  if (used || now - last_use_ns_ < bound) {
    const std::uint64_t last_use = last_use_ns_;
    watch_idleness();
    last_use_ns_ = last_use;
    return;
  }
  state_ = LaneState::idle;
  failures_ = 0;
  reason_.clear();
  drop_wire();
  fail_exchanges({BH_E_CANCELLED, "it has been stopped because it was idle"}, false);
  host_.lane_changed(*this);
}

// ---- loss and reconnection ---------------------------------------------------------------------

void WireLane::down(const Error &error, std::uint32_t retry_after_ms) {
  if (state_ == LaneState::closed) return;
  if (!opening_.ended_on_probe(error)) return attempt_failed(error, retry_after_ms);
  losing_ = true;
  drop_wire();
  fail_exchanges(error, false);
  losing_ = false;
  connect();
}

// Called when the current connection has ended: either it never became ready, or it was lost.
void WireLane::attempt_failed(const Error &error, std::uint32_t retry_after_ms) {
  const bool was_ready = state_ == LaneState::ready;
  const std::uint64_t now = host_.reactor().now_ns();
  if (was_ready) {
    ++restarts_;
    if (now - ready_since_ns_ >= steady_ns) failures_ = 0;
  } else {
    ++failures_;
  }
  state_ = LaneState::waiting;
  settled_ = true;
  reason_ = host_.without_credentials(error.text).value_or(error.text);
  host_.log(BH_LOG_WARN, connection_.about(reason_));
  // Requests that were sent are never repeated, because the server may have executed them. Unsent
  // requests wait for the retry, but only if the connection was ready before. While requests are
  // being failed, clients may send new calls. These calls are queued, and regain() decides about
  // them as well.
  losing_ = true;
  drop_wire();
  fail_exchanges(error, !was_ready || draining_);
  losing_ = false;
  if (!draining_) regain(was_ready, retry_after_ms);
  host_.lane_changed(*this);
}

void WireLane::reopen() {
  if (state_ != LaneState::ready) return;
  attempt_failed({BH_E_PROTOCOL, "the server no longer supports MCP " + conversation_.revision() +
                                     "; it is opened again"},
                 0);
}

void WireLane::regain(bool was_ready, std::uint32_t retry_after_ms) {
  if (was_ready) ++failures_;
  if (lazy() && failures_ >= max_crashes) {
    reason_ += " (for the third time in a row; the server is not restarted until a reload)";
    if (listed_) start_grace();
    return fail_exchanges({BH_E_UNAVAILABLE, reason_}, true);
  }
  if (!lazy() && listed_) start_grace();  // includes lists that are only remembered
  const bool wanted = !queue_.empty() && may_start_for_call();
  const bool at_once = !lazy() && was_ready && failures_ == 1;
  if (wanted || at_once) return start_for_call();
  if (!lazy()) schedule_retry(retry_after_ms);
}

void WireLane::drop_wire() {
  if (connection_.handle() == 0) return;
  opening_.stop();
  subscriptions_.listening().stop();
  connection_.close();
}

void WireLane::fail_exchanges(const Error &error, bool also_queued) {
  const std::string text = connection_.about(error.text);
  std::vector<std::uint64_t> ids;
  for (Exchange *e = exchanges.head; e != nullptr; e = e->lane_next) {
    const bool queued = e->purpose == Purpose::call && !e->sent && !e->local;
    if (!queued || also_queued) ids.push_back(e->id);
  }
  pumping_ = true;  // nothing is sent while the lane has no connection
  for (const std::uint64_t id : ids) {
    Exchange *e = host_.exchanges().get(id);
    if (e == nullptr) continue;
    if (e->purpose == Purpose::call) {
      host_.fail_call(*e->call, code::internal_error, text, BH_OUTCOME_ERROR);
    } else {
      host_.drop(*e);
    }
  }
  pumping_ = false;
  queue_.erase_if([this](std::uint64_t waiting) {
    const Exchange *e = host_.exchanges().get(waiting);
    return e == nullptr || e->lane != this;  // ended, or its error waits for the policy
  });
}

void WireLane::schedule_retry(std::uint32_t retry_after_ms) {
  const Limits &limits = host_.limits();
  const std::uint32_t doublings = std::min<std::uint32_t>(failures_ > 0 ? failures_ - 1 : 0, 16);
  const std::uint64_t backoff = std::min(limits.retry_min_ms << doublings, limits.retry_max_ms);
  const std::uint64_t delay = std::max<std::uint64_t>(
      jitter(backoff), std::min<std::uint64_t>(retry_after_ms, limits.retry_max_ms));
  host_.reactor().timer_cancel(retry_timer_);
  retry_timer_ = host_.reactor().timer_start(this, delay, bh::callback(this, [](WireLane &self) {
                                               self.retry_timer_ = 0;
                                               if (self.state_ != LaneState::waiting) return;
                                               if (self.connection_.handle() == 0)
                                                 return self.connect();
                                               self.state_ = LaneState::connecting;
                                               self.lists_.start(ItemKind::tool);
                                             }));
}

// The tools of a lost server stay listed for limits.grace_ms, because most servers return within
// this time. If the tools were removed, every client would have to fetch its list twice.
void WireLane::start_grace() {
  if (grace_timer_ != 0) return;
  grace_timer_ = host_.reactor().timer_start(this, host_.limits().grace_ms,
                                             bh::callback(this, [](WireLane &self) {
                                               self.grace_timer_ = 0;
                                               if (self.state_ == LaneState::ready) return;
                                               self.listed_ = false;
                                               self.host_.items_changed(self);
                                               self.host_.lane_changed(self);
                                             }));
}

void WireLane::close() {
  state_ = LaneState::closed;
  reason_ = "the gateway closed it";
  fail_exchanges({BH_E_CANCELLED, "its connection is being closed"}, true);
  queue_.clear();
  host_.reactor().timer_cancel(retry_timer_);
  host_.reactor().timer_cancel(grace_timer_);
  host_.reactor().timer_cancel(idle_timer_);
  retry_timer_ = grace_timer_ = idle_timer_ = 0;
  drop_wire();
}

}  // namespace bulkhead
