#include "link/policy_client_stub.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "link/frames.hpp"
#include "link/texts.hpp"
#include "reactor/post_owned.hpp"

namespace bulkhead::link {
namespace {

PolicyText text_of(const bh_policy_request &r) {
  PolicyText text;
  text.session = r.session;
  text.flags = r.flags;
  for (std::size_t i = 0; i < policy_texts.size(); ++i)
    text.texts[i] = bh::view(r.*policy_texts[i]);
  text.session_calls = r.session_calls;
  text.session_age_ns = r.session_age_ns;
  text.pin = r.pin;
  text.event = r.event;
  return text;
}

}  // namespace

struct PolicyClientStub::Receiver final : Channel::Receiver {
  explicit Receiver(PolicyClientStub &owner) : stub(owner) {}
  void frame(Channel &channel, const Frame &frame, std::string_view payload, OwnedFd) override {
    stub.on_frame(channel, frame, payload);
  }
  void closed(Channel &channel, std::string_view reason) override { stub.lost(channel, reason); }
  PolicyClientStub &stub;
};

PolicyClientStub::PolicyClientStub(Reactor &reactor, std::string compartment,
                                   const bh_limits &limits, PolicyEvents &events)
    : reactor_(reactor),
      compartment_(std::move(compartment)),
      limits_(limits),
      events_(events),
      receiver_(std::make_unique<Receiver>(*this)) {}

PolicyClientStub::~PolicyClientStub() {
  reactor_.forget(this);
}

// ---- connection to the other process ---------------------------------------------------------

std::unique_ptr<Channel> PolicyClientStub::channel_to(OwnedFd trunk) {
  return std::make_unique<Channel>(reactor_, std::move(trunk), *receiver_,
                                   max_policy_frame_bytes(limits_),
                                   limits_.write_queue_bytes + max_head_bytes, false);
}

void PolicyClientStub::attach(OwnedFd trunk) {
  if (trunk_ != nullptr) lost(*trunk_, "it was replaced");
  failure_.clear();
  trunk_ = channel_to(std::move(trunk));
}

void PolicyClientStub::give_up(std::string reason) {
  failure_ = "compartment \"" + compartment_ + "\": " + std::move(reason);
  retired_.clear();
  paused_ = false;
  refuse_all(failure_);
  if (next_ != nullptr) fail_next(BH_E_UNAVAILABLE, failure_);
}

// Called when a process has closed its channel or has violated the protocol.
void PolicyClientStub::lost(Channel &channel, std::string_view why) {
  if (next_ != nullptr && &channel == next_->channel.get()) return next_lost(why);
  const std::string reason = "compartment \"" + compartment_ + "\": " + std::string(why);
  const auto retired = std::find_if(retired_.begin(), retired_.end(),
                                    [&](const auto &one) { return one.get() == &channel; });
  if (retired != retired_.end()) {
    const std::unique_ptr<Channel> ended = std::move(*retired);
    retired_.erase(retired);
    return refuse_sent(ended.get(), reason);
  }
  const std::unique_ptr<Channel> ended = std::move(trunk_);
  ready_ = has_state_ = false;
  was_lost_ = true;
  if (!paused_) {
    // Requests that were queued for the lost process are refused, too.
    held_.clear();
    held_bytes_ = 0;
    refuse_sent(nullptr, reason);
  }
  refuse_sent(ended.get(), reason);
  // A process that has exited cannot export its state. As after every crash, its replacement begins
  // without state.
  if (next_ != nullptr && next_->step == Next::Step::exporting) finish_step(Next::Step::moved, {});
}

bool PolicyClientStub::is_retired(const Channel &channel) const noexcept {
  return std::any_of(retired_.begin(), retired_.end(),
                     [&](const auto &one) { return one.get() == &channel; });
}

// Refuses the requests that were sent to a process, or those that are queued (null).
void PolicyClientStub::refuse_sent(const Channel *to, std::string_view why) {
  std::vector<std::uint64_t> numbers;
  for (const auto &[number, question] : pending_) {
    if (question.channel == to) numbers.push_back(number);
  }
  refuse(numbers, why);
}

void PolicyClientStub::refuse_all(std::string_view why) {
  std::vector<std::uint64_t> numbers;
  for (const auto &[number, question] : pending_) numbers.push_back(number);
  held_.clear();
  held_bytes_ = 0;
  refuse(numbers, why);
}

void PolicyClientStub::refuse(const std::vector<std::uint64_t> &numbers, std::string_view why) {
  for (const std::uint64_t number : numbers) {
    const auto at = pending_.find(number);
    if (at == pending_.end()) continue;  // removed by an event of an earlier request
    const bool filter = at->second.filter;
    pending_.erase(at);
    if (filter) {
      events_.policy_filtered(number, false);
    } else {
      events_.policy_refused(number, why);
    }
  }
}

void PolicyClientStub::report_unhealthy(Channel &channel, std::string_view why) {
  const bool current = &channel == trunk_.get();
  lost(channel, why);
  // If the next process is in use now, it must not be restarted.
  if (current && trunk_ == nullptr) events_.process_unhealthy(compartment_);
}

void PolicyClientStub::unanswered(std::uint64_t number, bool late) {
  const auto at = pending_.find(number);
  if (at == pending_.end()) return;
  const Pending question = at->second;
  pending_.erase(at);
  if (question.channel == nullptr) return;
  const bool current = question.channel == trunk_.get();
  if (late && !question.seen && current) {
    // Posted, because the router does not expect events while it calls unanswered().
    post_owned(reactor_, this, [this, trunk = trunk_.get()] {
      if (trunk_.get() == trunk && ready_) report_unhealthy(*trunk_, "it is unresponsive");
    });
    return;
  }
  Frame frame;
  frame.kind = FrameKind::policy_forget;
  frame.exchange = number;
  if (current) return static_cast<void>(trunk_->send(frame, std::string_view()));
  for (const auto &channel : retired_) {
    if (channel.get() == question.channel) channel->send(frame, std::string_view());
  }
}

// ---- incoming frames -------------------------------------------------------------------------

void PolicyClientStub::on_frame(Channel &channel, const Frame &frame, std::string_view payload) {
  if (next_ != nullptr && &channel == next_->channel.get()) return on_next_frame(frame, payload);
  if (frame.kind == policy_state) {
    if (&channel == trunk_.get()) on_exported(frame, payload);
    return;
  }
  if (payload.size() > limits_.message_bytes + max_head_bytes) {
    return report_unhealthy(channel, "it sent a frame that is too large");
  }
  switch (frame.kind) {
    case policy_needs:
    case plugin_failed:
    case FrameKind::policy_changed:
      return on_state(channel, frame, payload);
    case policy_waits:
    case policy_refused:
    case FrameKind::policy_filtered:
      return on_answer(channel, frame, payload);
    case policy_verdict:
      if (!on_verdict(channel, frame, payload)) {
        report_unhealthy(channel, "it sent a malformed verdict");
      }
      return;
    case policy_returned:
      if (!on_returned(channel, frame, payload)) {
        report_unhealthy(channel, "it returned a malformed request");
      }
      return;
    default:
      return report_unhealthy(channel, "it sent an unexpected frame");
  }
}

// Handles what a process reports about itself. Reports of a process that was replaced are ignored.
void PolicyClientStub::on_state(Channel &channel, const Frame &frame, std::string_view payload) {
  if (&channel != trunk_.get()) return;
  if (frame.kind == plugin_failed) {
    failure_ = "compartment \"" + compartment_ + "\": " + std::string(payload);
    held_.clear();
    held_bytes_ = 0;
    refuse_sent(nullptr, failure_);
    return refuse_sent(trunk_.get(), failure_);
  }
  if (frame.kind == policy_needs) {
    needs_ = frame.code;
    has_state_ = frame.value == 1;
    ready_ = true;
    if (!paused_) send_held();
  }
  events_.policy_changed();
}

void PolicyClientStub::on_answer(Channel &channel, const Frame &frame, std::string_view payload) {
  const auto at = pending_.find(frame.exchange);
  if (at == pending_.end() || at->second.channel != &channel) return;
  if (frame.kind == policy_waits) {
    at->second.seen = true;
    return;
  }
  const bool filtered = frame.kind == FrameKind::policy_filtered;
  if (at->second.filter != filtered) return;
  pending_.erase(at);
  if (filtered) return events_.policy_filtered(frame.exchange, frame.code == 1);
  events_.policy_refused(frame.exchange, payload);
}

// Handles a verdict. Returns false if the frame is malformed. A verdict without a pending request
// is ignored.
bool PolicyClientStub::on_verdict(Channel &channel, const Frame &frame, std::string_view payload) {
  VerdictText text;
  if (frame.value > payload.size()) return false;
  if (!from_bytes(payload.substr(0, frame.value), &text)) return false;
  const auto at = pending_.find(frame.exchange);
  if (at == pending_.end() || at->second.filter || at->second.channel != &channel) return true;
  pending_.erase(at);
  bh_verdict verdict{};
  verdict.size = sizeof verdict;
  verdict.verdict = frame.code;
  verdict.rule = bh::str(text.rule);
  verdict.reason = bh::str(text.reason);
  verdict.arguments = bh::str(payload.substr(frame.value));
  verdict.flags = text.flags;
  events_.policy_decided(frame.exchange, verdict);
  return true;
}

// ---- requests --------------------------------------------------------------------------------

bh_status PolicyClientStub::ask(Frame frame, const bh_policy_request &request, bh_str text,
                                bh_error *error) {
  if (!failure_.empty()) return bh::fail(error, BH_E_UNAVAILABLE, failure_);
  if (trunk_ == nullptr && was_lost_ && !paused_) {
    return bh::fail(error, BH_E_UNAVAILABLE,
                    "compartment \"" + compartment_ + "\" is being restarted");
  }
  const std::string head = to_bytes(text_of(request));
  frame.exchange = request.exchange;
  frame.value = head.size();
  if (sends()) {
    if (!send(frame, head, bh::view(text))) {
      return bh::fail(error, BH_E_LIMIT,
                      "compartment \"" + compartment_ +
                          "\" reads too slowly, or the text exceeds the message size limit");
    }
  } else {
    held_bytes_ += head.size() + text.n;
    if (held_bytes_ > limits_.write_queue_bytes) {
      held_bytes_ -= head.size() + text.n;
      return bh::fail(error, BH_E_LIMIT,
                      "compartment \"" + compartment_ +
                          "\" is starting or being replaced, and too much data is waiting for it");
    }
    held_.push_back({frame, head, std::string(bh::view(text)), request.event, needs_});
  }
  pending_[request.exchange] = {frame.kind == policy_filter, false,
                                sends() ? trunk_.get() : nullptr, needs_};
  return BH_PENDING;
}

bool PolicyClientStub::send(const Frame &frame, std::string_view head, std::string_view text) {
  const bh_str parts[] = {bh::str(head), bh::str(text)};
  if (head.size() + text.size() > limits_.message_bytes + max_head_bytes) return false;
  return trunk_ != nullptr && trunk_->send(frame, parts, 2) == BH_OK;
}

// Returns true if the policy must be asked, now that its needs are known.
bool PolicyClientStub::wants(const Held &held) const noexcept {
  if (held.frame.kind == FrameKind::policy_filter) return (needs_ & BH_POLICY_FILTERS_LISTS) != 0;
  if (held.frame.kind == FrameKind::policy_observe) return (needs_ & BH_POLICY_READS_RESULTS) != 0;
  if (held.event == BH_EVENT_CALL) return (needs_ & BH_POLICY_DECIDES) != 0;
  const bool note = held.event == BH_EVENT_NOTIFICATION;
  return (needs_ & (note ? BH_POLICY_JUDGES_NOTIFICATIONS : BH_POLICY_JUDGES_INPUT)) != 0;
}

void PolicyClientStub::send_held() {
  const auto held = std::exchange(held_, {});
  held_bytes_ = 0;
  for (const Held &one : held) deliver(one);
}

// Sends a request that was queued, or that another process has returned.
void PolicyClientStub::deliver(const Held &one) {
  constexpr std::uint32_t data = BH_POLICY_READS_ARGUMENTS | BH_POLICY_READS_DEFINITION;
  const auto at = pending_.find(one.frame.exchange);
  if (at == pending_.end()) return;
  const bool filter = at->second.filter;
  if (!wants(one)) {
    pending_.erase(at);
    if (filter) return events_.policy_filtered(one.frame.exchange, true);
    bh_verdict verdict{};
    verdict.size = sizeof verdict;
    verdict.verdict = BH_VERDICT_ALLOW;
    return events_.policy_decided(one.frame.exchange, verdict);
  }
  // A result is always complete. Other requests have only the data that the policy was assumed to
  // need.
  const bool lacks_data =
      one.frame.kind != FrameKind::policy_observe && (needs_ & ~one.needs & data) != 0;
  if (!lacks_data && send(one.frame, one.head, one.text)) {
    at->second.channel = trunk_.get();
    at->second.seen = false;
    return;
  }
  pending_.erase(at);
  if (filter) return events_.policy_filtered(one.frame.exchange, false);
  events_.policy_refused(
      one.frame.exchange,
      "compartment \"" + compartment_ +
          (lacks_data ? "\" was replaced by a version that needs other data; try again"
                      : "\" reads too slowly, or the text exceeds the message size limit"));
}

// ---- table -----------------------------------------------------------------------------------

struct PolicyClientStubFunctions {
  static PolicyClientStub &self(void *self) { return *static_cast<PolicyClientStub *>(self); }

  static std::uint32_t needs(void *stub) { return self(stub).needs_; }

  static bh_status decide(void *stub, const bh_policy_request *request, bh_verdict *,
                          bh_error *error) {
    Frame frame;
    frame.kind = FrameKind::policy_decide;
    return self(stub).ask(frame, *request, request->arguments, error);
  }
  static bh_status observe(void *stub, const bh_policy_request *request, bh_str result,
                           bh_verdict *, bh_error *error) {
    Frame frame;
    frame.kind = FrameKind::policy_observe;
    return self(stub).ask(frame, *request, result, error);
  }
  static bh_status filter(void *stub, const bh_policy_request *request, bh_error *error) {
    Frame frame;
    frame.kind = FrameKind::policy_filter;
    return self(stub).ask(frame, *request, {}, error);
  }
};

const bh_policy &PolicyClientStub::table() noexcept {
  static constexpr bh_policy table{sizeof(bh_policy),
                                   0,
                                   PolicyClientStubFunctions::needs,
                                   PolicyClientStubFunctions::decide,
                                   PolicyClientStubFunctions::observe,
                                   PolicyClientStubFunctions::filter,
                                   nullptr};
  return table;
}

}  // namespace bulkhead::link
