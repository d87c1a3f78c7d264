// The connection handling of Route: opens connections, handles their loss, and shuts the route
// down.
#include <utility>

#include "pipe/route.hpp"

namespace bulkhead::pipe {

// ---- connections -----------------------------------------------------------------------------

void Route::attempt() {
  retry_timer_ = 0;
  wire_ = Wire::connecting;
  if (const auto opened = ends_.open_lane(++lane_); !opened) return attempt_failed(opened.error());
  if (client_full_) ends_.hold_lane(true);
}

void Route::attempt_later(std::uint64_t delay_ms) {
  wire_ = Wire::none;
  retry_timer_ = reactor_.timer_start(this, delay_ms, bh::callback<&Route::attempt>(this));
}

void Route::attempt_failed(const Error &error) {
  const std::uint64_t now = reactor_.now_ns();
  if (attempts_.was_last(now, error)) return give_up(error);
  const std::string line = attempts_.failed(now, endpoint_, error);
  if (!line.empty()) log(BH_LOG_WARN, line);
  attempt_later(attempts_.retry_ms());
}

void Route::connected(bh_lane lane) {
  if (lane != lane_ || wire_ != Wire::connecting) return;
  wire_ = Wire::up;
  cancel(&outage_timer_);
  long_outage_ = false;
  const std::string line = attempts_.connected(reactor_.now_ns(), endpoint_);
  if (!line.empty()) log(BH_LOG_INFO, line);
  if (handshake_.accepted()) {
    handshake_.repeat(ends_, backlog_.next_exchange());
    state_.repeat(ends_, backlog_);
  }
  send_waiting();
  hold_as_needed();
  check_end();
}

void Route::send_waiting() {
  // Send the messages one at a time. If the connection is lost in this loop, the remaining messages
  // stay queued.
  while (backlog_.waiting() != 0 && !ended_ && wire_ == Wire::up) {
    const Backlog::Waiting message = backlog_.take_first();
    const std::size_t left = backlog_.waiting();
    send_now(message.kind, message.exchange, message.text);
    if (backlog_.waiting() > left) return backlog_.move_last_to_front();
  }
}

void Route::lane_down(bh_lane lane, const Error &error) {
  if (lane != lane_ || wire_ == Wire::none || ended_) return;
  if (wire_ == Wire::up) return lost(error);
  ends_.close_lane();
  attempt_failed(error);
}

// Handles the loss of an open connection. Requests that were already sent receive an error. They
// are not sent again, because they may have been executed.
void Route::lost(const Error &error) {
  ends_.close_lane();
  wire_ = Wire::none;
  hold_.set_lane_full(false);
  handshake_.on_lost();
  state_.on_lost();
  backlog_.forget_questions();
  const std::size_t failed = fail_pending(error.text + "; the request may have run");
  hold_as_needed();
  if (input_ended_ && backlog_.waiting() == 0) return end({});
  const std::uint64_t retry_ms = attempts_.lost(reactor_.now_ns());
  log(BH_LOG_WARN, "the connection to " + endpoint_ + " was lost (" + error.text + "), " +
                       std::to_string(failed) + (failed == 1 ? " request" : " requests") +
                       " failed; reconnecting");
  outage_timer_ = reactor_.timer_start(this, limits_.outage_wait_ms,
                                       bh::callback<&Route::outage_is_long>(this));
  attempt_later(retry_ms);
}

void Route::outage_is_long() {
  outage_timer_ = 0;
  long_outage_ = true;
  fail_waiting("not sent: there is no connection to " + endpoint_);
  hold_as_needed();
  check_end();
}

void Route::give_up(const Error &error) {
  wire_ = Wire::none;
  const std::string reason = "cannot reach " + endpoint_ + ": " + error.text;
  fail_waiting("not sent: " + reason);
  end(reason);
}

// ---- shutdown --------------------------------------------------------------------------------

// Once the client's input has ended, shuts down the connection for sending and waits for the
// remaining responses.
void Route::check_end() {
  if (!input_ended_ || ended_) return;
  const bool idle = backlog_.idle();
  if (wire_ != Wire::up) {
    if (idle) end({});
    return;
  }
  if (backlog_.waiting() != 0) return;
  if (!std::exchange(finished_, true)) ends_.finish_lane();
  if (end_timer_ != 0 && !idle) return;
  cancel(&end_timer_);
  end_timer_ = reactor_.timer_start(this, idle ? limits_.linger_ms : limits_.drain_ms,
                                    bh::callback<&Route::drain_is_over>(this));
}

void Route::drain_is_over() {
  end_timer_ = 0;
  fail_pending("no response within " + seconds(limits_.drain_ms * ms_in_ns) +
               " after the end of the input");
  ends_.close_lane();
  wire_ = Wire::none;
  end({});
}

void Route::end(std::string_view failure) {
  if (std::exchange(ended_, true)) return;
  for (std::uint64_t *timer : {&retry_timer_, &outage_timer_, &end_timer_}) cancel(timer);
  if (wire_ != Wire::none) ends_.close_lane();
  wire_ = Wire::none;
  ends_.done(failure);
}

}  // namespace bulkhead::pipe
