// The life cycle of a connection: start, stop, loss and reconnection.
#include <utility>

#include "bulkhead/cpp/text.hpp"
#include "route/lane_host.hpp"
#include "route/upstream.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

// ---- opening ----------------------------------------------------------------------------------

void WireLane::opened_with(const ServerEdge &edge, ServerEdge::Opened opened) {
  server_caps_ = opened.caps;
  instructions_ = std::move(opened.instructions);
  // A connector may lose the connection inside any call.
  const bh_lane handle = connection_.handle();
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

// Returns true if a call may start the server. This is the case if a lazy server is not running, or
// if another server has lost a connection and the lane waits for the next attempt. After several
// consecutive losses, a call no longer starts the server, because the call itself may be the cause.
bool WireLane::may_start_for_call() const {
  if (connection_.handle() != 0 || draining_ || reconnects_.exhausted()) return false;
  return sleeps() || (state_ == LaneState::waiting && (lazy() || restarts_ > 0));
}

void WireLane::start_for_call() {
  reconnects_.cancel();
  connect();
}

bool WireLane::busy() {
  return in_flight != 0 || tasks_.open_cancels() != 0 || !queue_.empty() || !watches.empty();
}

// The items of the server stay listed, so clients do not notice that it has stopped.
void WireLane::stop_idle() {
  state_ = LaneState::idle;
  reconnects_.reset();
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

void WireLane::challenged(const LaneFailure &failure) {
  constexpr std::size_t most = 1024;
  if (failure.challenges.empty() || !challenges_.may_log(host_.reactor().now_ns())) return;
  std::string text = "requires credentials";
  if (failure.http_status != 0) text += " (HTTP " + std::to_string(failure.http_status) + ")";
  std::string_view before = "; WWW-Authenticate: ";
  for (const std::string &challenge : failure.challenges) {
    // A credential that was cut off would not be recognized.
    const std::string shown = host_.without_credentials(challenge).value_or(challenge);
    text.append(before).append(bh::one_line(shown, most));
    before = ", ";
  }
  host_.log(BH_LOG_WARN, connection_.about(text));
}

// Called when a connection could not be opened, did not become ready, or was lost.
void WireLane::attempt_failed(const Error &error, std::uint32_t retry_after_ms) {
  const bool was_ready = state_ == LaneState::ready;
  if (was_ready) {
    ++restarts_;
    reconnects_.lost();
  } else {
    reconnects_.failed();
  }
  state_ = LaneState::waiting;
  settled_ = true;
  reason_ = host_.without_credentials(error.text).value_or(error.text);
  host_.log(BH_LOG_WARN, connection_.about(reason_));
  // Requests that were sent are never repeated, because the server may have executed them. Unsent
  // requests wait for the retry, but only if the connection was ready before and the lane is not
  // draining. While requests are being failed, clients may send new calls. These calls are queued,
  // and regain() decides about them as well.
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
  if (was_ready) reconnects_.failed();
  if (lazy() && reconnects_.exhausted()) {
    reason_ += " (for the third time in a row; calls no longer start the server until its ";
    reason_ += "definition changes or it is restarted)";
    if (listed_) start_grace();
    return fail_exchanges({BH_E_UNAVAILABLE, reason_}, true);
  }
  if (!lazy() && listed_) start_grace();  // also if the listed items come from storage
  const bool wanted = !queue_.empty() && may_start_for_call();
  const bool at_once = !lazy() && was_ready && reconnects_.failures() == 1;
  if (wanted || at_once) return start_for_call();
  if (!lazy()) reconnects_.schedule(retry_after_ms);
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
  queue_.remove_ended();
}

void WireLane::retry() {
  if (state_ != LaneState::waiting) return;
  if (connection_.handle() == 0) return connect();
  state_ = LaneState::connecting;
  lists_.start(ItemKind::tool);
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
  reconnects_.cancel();
  idle_.cancel();
  host_.reactor().timer_cancel(grace_timer_);
  grace_timer_ = 0;
  drop_wire();
}

}  // namespace bulkhead
