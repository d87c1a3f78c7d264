// Replaces the process of a policy: connects to the next one, and moves the state.
#include <algorithm>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/text.hpp"
#include "link/frames.hpp"
#include "link/policy_client_stub.hpp"
#include "link/texts.hpp"

namespace bulkhead::link {
namespace {

constexpr std::size_t max_reason_bytes = 480;

// Returns the reason that another process has sent.
std::string reason_of(std::string_view payload) {
  return bh::one_line(payload.substr(0, max_reason_bytes), max_reason_bytes);
}

// A process reports an error as a negative status.
bh_status failure_of(const Frame &frame) {
  const auto status = static_cast<bh_status>(frame.code);
  return status < 0 ? status : BH_E_INTERNAL;
}

}  // namespace

void PolicyClientStub::connect_next(OwnedFd trunk, Done connected) {
  discard_next();
  next_ = std::make_unique<Next>();
  next_->channel = channel_to(std::move(trunk));
  next_->done = std::move(connected);
  next_->timer =
      reactor_.timer_start(this, max_connect_ms, bh::callback(this, [](PolicyClientStub &self) {
                             self.next_->timer = 0;
                             self.fail_next(BH_E_TIMEOUT, "the new process has not responded");
                           }));
}

void PolicyClientStub::on_next_frame(const Frame &frame, std::string_view payload) {
  switch (frame.kind) {
    case plugin_failed:
      return next_broken(BH_E_UNAVAILABLE, reason_of(payload));
    case FrameKind::policy_changed:
      return;  // use_next() reports the change
    case policy_imported:
      return on_imported(frame, payload);
    case policy_needs:
      if (next_->step != Next::Step::connecting) break;
      next_->needs = frame.code;
      next_->has_state = frame.value == 1;
      return finish_step(Next::Step::connected, {});
    default:
      break;
  }
  next_broken(BH_E_PROTOCOL, "the new process sent an unexpected frame");
}

// Fails the current step. Between two steps, the next one fails, or use_next() handles the loss.
void PolicyClientStub::next_broken(bh_status status, const std::string &why) {
  if (!next_->done) {
    next_->lost = true;
  } else {
    fail_next(status, why);
  }
}

void PolicyClientStub::move_state(Done moved) {
  if (next_ == nullptr || next_->step != Next::Step::connected || next_->lost) {
    return moved(
        fail(BH_E_UNAVAILABLE, "compartment \"" + compartment_ +
                                   "\": the policy was not replaced, because its state was "
                                   "not moved: the new process has exited"));
  }
  next_->done = std::move(moved);
  const bool has_state = sends() && has_state_ && failure_.empty();
  if (!has_state || !next_->has_state) {
    if (has_state) events_.state_dropped(compartment_);
    return finish_step(Next::Step::moved, {});
  }
  // If the next policy needs data of the requests that the current one does not need, this data
  // must be part of the queued requests.
  constexpr std::uint32_t data = BH_POLICY_READS_ARGUMENTS | BH_POLICY_READS_DEFINITION;
  const std::uint32_t added = next_->needs & ~needs_ & data;
  if (added != 0) {
    next_->added_needs |= added;
    needs_ |= added;
    events_.policy_changed();
  }
  paused_ = true;
  next_->step = Next::Step::exporting;
  next_->timer = reactor_.timer_start(
      this, state_time_ms_, bh::callback(this, [](PolicyClientStub &self) {
        self.next_->timer = 0;
        const bool exported = self.next_->step == Next::Step::importing;
        self.fail_next(
            BH_E_TIMEOUT,
            std::string(exported ? "the new process has not imported" : "it has not exported") +
                " its state within " + std::to_string(self.state_time_ms_) + " ms");
      }));
  Frame frame;
  frame.kind = policy_export;
  frame.exchange = ++exports_;
  if (trunk_->send(frame) == BH_E_LIMIT) fail_next(BH_E_LIMIT, "the process reads too slowly");
}

void PolicyClientStub::on_exported(const Frame &frame, std::string_view payload) {
  const bool awaited = next_ != nullptr && next_->step == Next::Step::exporting;
  if (!awaited || frame.exchange != exports_) return;  // it arrives too late
  if (static_cast<bh_status>(frame.code) != BH_OK) {
    return fail_next(failure_of(frame), reason_of(payload));
  }
  StateText state;
  if (!from_bytes(payload, &state) || state.bytes.size() > BH_STATE_BYTES) {
    return fail_next(BH_E_PROTOCOL, "the state is malformed");
  }
  next_->step = Next::Step::importing;
  Frame import;
  import.kind = policy_import;
  import.exchange = exports_;
  if (next_->channel->send(import, payload) == BH_E_LIMIT) {
    fail_next(BH_E_LIMIT, "the new process reads too slowly");
  }
}

void PolicyClientStub::on_imported(const Frame &frame, std::string_view payload) {
  if (next_->step != Next::Step::importing || frame.exchange != exports_) return;
  if (static_cast<bh_status>(frame.code) != BH_OK) {
    return fail_next(failure_of(frame), "the new process rejects the state: " + reason_of(payload));
  }
  finish_step(Next::Step::moved, {});
}

void PolicyClientStub::next_lost(std::string_view why) {
  next_->lost = true;
  // After move_state(), use_next() handles the loss like that of any other process.
  if (next_->done) fail_next(BH_E_UNAVAILABLE, "the new process: " + std::string(why));
}

// Ends the current step with an error.
void PolicyClientStub::fail_next(bh_status status, std::string_view why) {
  const bool connecting = next_->step == Next::Step::connecting;
  const std::string text = "compartment \"" + compartment_ + "\": the policy was not replaced" +
                           (connecting ? ": " : ", because its state was not moved: ") +
                           std::string(why);
  if (!connecting) undo_move();
  const Done done = std::exchange(next_->done, nullptr);
  if (connecting) discard_next();
  if (done) done(fail(status, text));
}

void PolicyClientStub::finish_step(Next::Step step, Result<void> result) {
  reactor_.timer_cancel(std::exchange(next_->timer, 0));
  next_->step = step;
  const Done done = std::exchange(next_->done, nullptr);
  if (done) done(std::move(result));
}

// The current process receives the queued requests, and sends the verdicts that it has held.
void PolicyClientStub::undo_move() {
  if (next_ == nullptr || next_->step == Next::Step::connecting) return;
  reactor_.timer_cancel(std::exchange(next_->timer, 0));
  next_->step = Next::Step::connected;
  if (!std::exchange(paused_, false)) return;
  const std::uint32_t added = std::exchange(next_->added_needs, 0);
  if (trunk_ != nullptr) {
    Frame frame;
    frame.kind = policy_continue;
    trunk_->send(frame);
    if (ready_) send_held();
  } else {
    held_.clear();
    held_bytes_ = 0;
    refuse_sent(nullptr, "compartment \"" + compartment_ + "\" is being restarted");
  }
  if (added == 0) return;
  needs_ &= ~added;
  events_.policy_changed();
}

void PolicyClientStub::discard_next() {
  if (next_ == nullptr) return;
  undo_move();
  reactor_.timer_cancel(next_->timer);
  next_.reset();
}

// The current process answers what it has received or, if its state was moved, returns it.
void PolicyClientStub::use_next() {
  if (next_ == nullptr || next_->step != Next::Step::moved) return;
  const std::unique_ptr<Next> next = std::move(next_);
  if (trunk_ != nullptr) {
    Frame frame;
    frame.kind = policy_end;
    trunk_->send(frame);
    retired_.push_back(std::move(trunk_));
  }
  trunk_ = std::move(next->channel);
  failure_.clear();
  needs_ = next->needs;
  has_state_ = next->has_state;
  ready_ = true;
  paused_ = false;
  if (next->lost) {
    lost(*trunk_, "the process exited");
  } else {
    send_held();
  }
  if (retired_.size() > max_retired) lost(*retired_.front(), "it was replaced");
  events_.policy_changed();
}

// Sends a request again that the former process has received, but whose verdict is not part of the
// state that was moved. Returns false if the frame is malformed.
bool PolicyClientStub::on_returned(Channel &channel, const Frame &frame, std::string_view payload) {
  PolicyText text;
  const bool known = frame.code == policy_decide || frame.code == policy_observe;
  if (!is_retired(channel) || !known || frame.value > payload.size() ||
      !from_bytes(payload.substr(0, frame.value), &text)) {
    return false;
  }
  const auto at = pending_.find(frame.exchange);
  if (at == pending_.end() || at->second.filter || at->second.channel != &channel) return true;
  Held again;
  again.frame.kind = static_cast<std::uint16_t>(frame.code);
  again.frame.exchange = frame.exchange;
  again.frame.value = frame.value;
  again.head = payload.substr(0, frame.value);
  again.text = payload.substr(frame.value);
  again.event = text.event;
  again.needs = at->second.needs;
  if (sends()) {
    deliver(again);
    return true;
  }
  const std::uint64_t size = again.head.size() + again.text.size();
  const bool waits = trunk_ != nullptr || paused_;
  if (!waits || held_bytes_ + size > limits_.write_queue_bytes) {
    refuse({frame.exchange}, "compartment \"" + compartment_ + "\" was replaced; try again");
    return true;
  }
  held_bytes_ += size;
  at->second.channel = nullptr;
  held_.push_back(std::move(again));
  return true;
}

}  // namespace bulkhead::link
