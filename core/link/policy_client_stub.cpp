#include "link/policy_client_stub.hpp"

#include <utility>

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
  void frame(Channel &, const Frame &frame, std::string_view payload, OwnedFd) override {
    stub.on_frame(frame, payload);
  }
  void closed(Channel &, std::string_view reason) override { stub.lost(reason); }
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

void PolicyClientStub::attach(OwnedFd trunk) {
  if (trunk_ != nullptr) lost("it was replaced");
  failure_.clear();
  trunk_ = std::make_unique<Channel>(reactor_, std::move(trunk), *receiver_,
                                     limits_.message_bytes + max_head_bytes,
                                     limits_.write_queue_bytes + max_head_bytes, false);
}

void PolicyClientStub::give_up(std::string reason) {
  failure_ = "compartment \"" + compartment_ + "\": " + std::move(reason);
  refuse_pending(failure_);
}

void PolicyClientStub::lost(std::string_view why) {
  trunk_.reset();
  ready_ = false;
  was_lost_ = true;
  refuse_pending("compartment \"" + compartment_ + "\": " + std::string(why));
}

void PolicyClientStub::refuse_pending(std::string_view why) {
  const auto pending = std::exchange(pending_, {});
  held_.clear();
  held_bytes_ = 0;
  for (const auto &[number, question] : pending) {
    if (question.filter) {
      events_.policy_filtered(number, false);
    } else {
      events_.policy_refused(number, why);
    }
  }
}

void PolicyClientStub::report_unhealthy(std::string_view why) {
  lost(why);
  events_.process_unhealthy(compartment_);
}

void PolicyClientStub::unanswered(std::uint64_t number, bool late) {
  const auto at = pending_.find(number);
  if (at == pending_.end()) return;
  const bool seen = at->second.seen;
  pending_.erase(at);
  if (!ready_) return;
  if (late && !seen) {
    // Posted, because the router does not expect events while it calls unanswered().
    post_owned(reactor_, this, [this, trunk = trunk_.get()] {
      if (trunk_.get() == trunk && ready_) report_unhealthy("it is unresponsive");
    });
    return;
  }
  Frame frame;
  frame.kind = FrameKind::policy_forget;
  frame.exchange = number;
  send(frame, {}, {});
}

// ---- incoming frames -------------------------------------------------------------------------

void PolicyClientStub::on_frame(const Frame &frame, std::string_view payload) {
  const auto at = pending_.find(frame.exchange);
  const bool asked = at != pending_.end();
  switch (frame.kind) {
    case policy_needs:
      needs_ = frame.code;
      ready_ = true;
      send_held();
      return events_.policy_changed();
    case plugin_failed:
      failure_ = "compartment \"" + compartment_ + "\": " + std::string(payload);
      return refuse_pending(failure_);
    case policy_waits:
      if (asked) at->second.seen = true;
      return;
    case policy_verdict:
      if (!on_verdict(frame, payload)) report_unhealthy("it sent a malformed verdict");
      return;
    case policy_refused:
      if (!asked || at->second.filter) return;
      pending_.erase(at);
      return events_.policy_refused(frame.exchange, payload);
    case FrameKind::policy_filtered:
      if (!asked || !at->second.filter) return;
      pending_.erase(at);
      return events_.policy_filtered(frame.exchange, frame.code == 1);
    case FrameKind::policy_changed:
      return events_.policy_changed();
    default:
      return report_unhealthy("it sent an unexpected frame");
  }
}

// Handles a verdict. Returns false if the frame is malformed. A verdict without a pending request
// is ignored.
bool PolicyClientStub::on_verdict(const Frame &frame, std::string_view payload) {
  VerdictText text;
  if (frame.value > payload.size()) return false;
  if (!from_bytes(payload.substr(0, frame.value), &text)) return false;
  const auto at = pending_.find(frame.exchange);
  if (at == pending_.end() || at->second.filter) return true;
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
  if (trunk_ == nullptr && was_lost_) {
    return bh::fail(error, BH_E_UNAVAILABLE,
                    "compartment \"" + compartment_ + "\" is being restarted");
  }
  const std::string head = to_bytes(text_of(request));
  frame.exchange = request.exchange;
  frame.value = head.size();
  if (ready_) {
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
                          "\" is still starting, and too much data is waiting for it");
    }
    held_.push_back({frame, head, std::string(bh::view(text)), request.event});
  }
  pending_[request.exchange] = {frame.kind == policy_filter, false};
  return BH_PENDING;
}

bool PolicyClientStub::send(const Frame &frame, std::string_view head, std::string_view text) {
  const bh_str parts[] = {bh::str(head), bh::str(text)};
  return trunk_ != nullptr && trunk_->send(frame, parts, 2) == BH_OK;
}

bool PolicyClientStub::judges(std::uint32_t event) const noexcept {
  if (event == BH_EVENT_CALL) return true;
  const bool note = event == BH_EVENT_NOTIFICATION;
  return (needs_ & (note ? BH_POLICY_JUDGES_NOTIFICATIONS : BH_POLICY_JUDGES_INPUT)) != 0;
}

void PolicyClientStub::send_held() {
  const auto held = std::exchange(held_, {});
  held_bytes_ = 0;
  for (const Held &one : held) {
    if (!pending_.contains(one.frame.exchange)) continue;
    // The request was queued before the policy's needs were known, so it may need no decision.
    if (!judges(one.event)) {
      pending_.erase(one.frame.exchange);
      bh_verdict verdict{};
      verdict.size = sizeof verdict;
      verdict.verdict = BH_VERDICT_ALLOW;
      events_.policy_decided(one.frame.exchange, verdict);
      continue;
    }
    if (send(one.frame, one.head, one.text)) continue;
    const bool filter = pending_.at(one.frame.exchange).filter;
    pending_.erase(one.frame.exchange);
    if (filter) {
      events_.policy_filtered(one.frame.exchange, false);
    } else {
      events_.policy_refused(one.frame.exchange,
                             "compartment \"" + compartment_ +
                                 "\" reads too slowly, or the text exceeds the message size limit");
    }
  }
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
  static bh_status filter(void *stub, const bh_policy_request *request) {
    Frame frame;
    frame.kind = FrameKind::policy_filter;
    return self(stub).ask(frame, *request, {}, nullptr);
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
