// The route's connections, one after the other, and its end.
#include <algorithm>
#include <utility>

#include "pipe/route.hpp"

namespace bulkhead::pipe {
namespace {

constexpr std::uint64_t ms_in_ns = 1'000'000;

std::string seconds(std::uint64_t ns) {
  const std::uint64_t tenths = ns / (100 * ms_in_ns);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

// ---- the connection ----------------------------------------------------------------------------

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
  if (!stood_ && now - started_ns_ >= limits_.start_ms * ms_in_ns) return give_up(error);
  // A wrong address does not become right by trying.
  if (!stood_ && (error.code == BH_E_INVALID || error.code == BH_E_DENIED)) return give_up(error);
  const bool first = retry_ms_ == 0;
  retry_ms_ = first ? limits_.first_retry_ms : std::min(2 * retry_ms_, limits_.max_retry_ms);
  if (reminded_ns_ == 0 && !stood_) {
    log(BH_LOG_WARN, "cannot reach " + endpoint_ + " yet (" + error.text + "); trying for " +
                         seconds(limits_.start_ms * ms_in_ns));
    reminded_ns_ = now;
  } else if (stood_ && now - reminded_ns_ >= limits_.reminder_ms * ms_in_ns) {
    log(BH_LOG_WARN, "still no connection to " + endpoint_ + " after " + seconds(now - lost_ns_) +
                         " (" + error.text + ")");
    reminded_ns_ = now;
  }
  attempt_later(retry_ms_);
}

void Route::connected(bh_lane lane) {
  if (lane != lane_ || wire_ != Wire::connecting) return;
  wire_ = Wire::up;
  connected_ns_ = reactor_.now_ns();
  cancel(&outage_timer_);
  long_outage_ = false;
  if (stood_) {
    log(BH_LOG_INFO,
        "connected to " + endpoint_ + " again after " + seconds(connected_ns_ - lost_ns_));
  } else if (reminded_ns_ != 0) {
    log(BH_LOG_INFO, "connected to " + endpoint_);
  }
  stood_ = true;
  repeat_handshake();
  send_waiting();
  hold_as_needed();
  check_end();
}

void Route::send_waiting() {
  // One by one: should the connection fall meanwhile, what is still here was not sent and waits on.
  while (!waiting_.empty() && !ended_ && wire_ == Wire::up) {
    const Waiting message = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= message.text.size();
    const std::size_t left = waiting_.size();
    send_now(message.kind, message.exchange, message.text);
    if (waiting_.size() <= left) continue;
    std::rotate(waiting_.begin(), waiting_.end() - 1, waiting_.end());  // kept: it stays the first
    return;
  }
}

void Route::lane_down(bh_lane lane, const Error &error) {
  if (lane != lane_ || wire_ == Wire::none || ended_) return;
  if (wire_ == Wire::up) return lost(error);
  ends_.close_lane();
  attempt_failed(error);
}

// What was sent may have run.
void Route::lost(const Error &error) {
  ends_.close_lane();
  wire_ = Wire::none;
  lane_full_ = false;
  handshake_.exchange = handshake_.repeated = 0;
  questions_.clear();
  const std::size_t failed = fail_pending(error.text);
  hold_as_needed();
  if (input_ended_ && waiting_.empty()) return end({});
  lost_ns_ = reminded_ns_ = reactor_.now_ns();
  log(BH_LOG_WARN, "the connection to " + endpoint_ + " is lost (" + error.text + "), " +
                       std::to_string(failed) + (failed == 1 ? " request" : " requests") +
                       " failed; connecting again");
  outage_timer_ = reactor_.timer_start(this, limits_.outage_wait_ms,
                                       bh::callback<&Route::outage_is_long>(this));
  // One that falls at once, again and again, is not replaced at once.
  const bool steady = lost_ns_ - connected_ns_ >= limits_.steady_ms * ms_in_ns;
  if (steady) retry_ms_ = 0;
  attempt_later(retry_ms_);
  retry_ms_ = std::clamp(2 * retry_ms_, limits_.first_retry_ms, limits_.max_retry_ms);
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

// ---- the end -----------------------------------------------------------------------------------

// Once the client has said everything: the other half is closed, and answers are awaited.
void Route::check_end() {
  if (!input_ended_ || ended_) return;
  const bool idle = pending_.empty() && waiting_.empty();
  if (wire_ != Wire::up) {
    if (idle) end({});
    return;
  }
  if (!waiting_.empty()) return;
  if (!std::exchange(finished_, true)) ends_.finish_lane();
  if (end_timer_ != 0 && !idle) return;
  cancel(&end_timer_);
  end_timer_ = reactor_.timer_start(this, idle ? limits_.linger_ms : limits_.drain_ms,
                                    bh::callback<&Route::drain_is_over>(this));
}

void Route::drain_is_over() {
  end_timer_ = 0;
  fail_pending("no answer in " + seconds(limits_.drain_ms * ms_in_ns) +
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
