#include "link/policy_server_stub.hpp"

#include <utility>

#include "bulkhead/cpp/basics.hpp"

namespace bulkhead::link {
namespace {

// The client stub's request numbers use the lower 50 bits and the highest bit. The other bits
// identify the link.
constexpr std::uint64_t link_shift = 50, link_bits = 13;
constexpr std::uint64_t link_mask = ((1ULL << link_bits) - 1) << link_shift;

bh_policy_request request_of(const PolicyText &text) {
  bh_policy_request r{};
  r.size = sizeof r;
  r.session = text.session;
  r.flags = text.flags;
  for (std::size_t i = 0; i < policy_texts.size(); ++i) r.*policy_texts[i] = bh::str(text.texts[i]);
  r.session_calls = text.session_calls;
  r.session_age_ns = text.session_age_ns;
  r.pin = text.pin;
  r.event = text.event;
  return r;
}

}  // namespace

struct PolicyServerStub::Receiver final : Channel::Receiver {
  explicit Receiver(PolicyServerStub &owner) : stub(owner) {}
  void frame(Channel &, const Frame &frame, std::string_view payload, OwnedFd) override {
    stub.on_frame(frame, payload);
  }
  void closed(Channel &, std::string_view) override {
    const auto on_lost = std::exchange(stub.on_lost_, nullptr);
    stub.trunk_.reset();
    stub.open_.clear();
    if (on_lost) on_lost();
  }
  PolicyServerStub &stub;
};

PolicyServerStub::PolicyServerStub(Reactor &reactor, const bh_limits &limits,
                                   const ServedPlugin &plugin)
    : reactor_(reactor),
      limits_(limits),
      plugin_(plugin),
      receiver_(std::make_unique<Receiver>(*this)) {}

PolicyServerStub::~PolicyServerStub() = default;

void PolicyServerStub::attach(OwnedFd trunk, std::function<void()> on_lost) {
  ++link_;
  ended_ = false;
  open_.clear();
  on_lost_ = std::move(on_lost);
  trunk_ = std::make_unique<Channel>(reactor_, std::move(trunk), *receiver_,
                                     limits_.message_bytes + max_head_bytes,
                                     limits_.write_queue_bytes + max_head_bytes, false);
  if (plugin_.policy == nullptr) return send(FrameKind::plugin_failed, 0, 0, plugin_.failure);
  send(FrameKind::policy_needs, 0, plugin_.policy->needs(plugin_.self));
}

std::uint64_t PolicyServerStub::plugin_number(std::uint64_t exchange) const noexcept {
  return (exchange & ~link_mask) | ((link_ << link_shift) & link_mask);
}

void PolicyServerStub::on_frame(const Frame &frame, std::string_view payload) {
  if (frame.kind == FrameKind::policy_end) {
    ended_ = true;
    return;
  }
  if (frame.kind == FrameKind::policy_forget) {
    open_.erase(plugin_number(frame.exchange));
    return;
  }
  PolicyText text;
  if (plugin_.policy == nullptr || frame.value > payload.size() ||
      !from_bytes(payload.substr(0, frame.value), &text)) {
    return;
  }
  bh_policy_request request = request_of(text);
  request.exchange = plugin_number(frame.exchange);
  ask(frame, request, payload.substr(frame.value));
}

void PolicyServerStub::ask(const Frame &frame, const bh_policy_request &asked,
                           std::string_view text) {
  bh_policy_request request = asked;
  bh_verdict verdict{};
  verdict.size = sizeof verdict;
  bh_error error = bh::make_error();
  bh_status status = BH_E_UNSUPPORTED;
  switch (frame.kind) {
    case FrameKind::policy_decide:
      request.arguments = bh::str(text);
      status = plugin_.policy->decide(plugin_.self, &request, &verdict, &error);
      break;
    case FrameKind::policy_observe:
      status = plugin_.policy->observe(plugin_.self, &request, bh::str(text), &verdict, &error);
      break;
    case FrameKind::policy_filter:
      status = plugin_.policy->filter(plugin_.self, &request);
      break;
    default:
      return;
  }
  const bool filter = frame.kind == FrameKind::policy_filter;
  if (status == BH_PENDING) {
    open_[request.exchange] = filter;
    return send(FrameKind::policy_waits, frame.exchange);
  }
  if (filter) return send(FrameKind::policy_filtered, frame.exchange, status == BH_OK ? 1 : 0);
  if (status != BH_OK) return send(FrameKind::policy_refused, frame.exchange, 0, bh::text(error));
  send_verdict(
      frame.exchange, verdict.verdict,
      {std::string(bh::view(verdict.rule)), std::string(bh::view(verdict.reason)), verdict.flags},
      bh::view(verdict.arguments));
}

// ---- asynchronous verdicts of the plugin --------------------------------------------------------

bool PolicyServerStub::take_open(std::uint64_t number, bool filter) {
  const auto at = open_.find(number);
  if (at == open_.end() || at->second != filter) return false;
  open_.erase(at);
  return true;
}

void PolicyServerStub::decided(std::uint64_t number, std::uint32_t verdict, const VerdictText &text,
                               std::string_view rewritten) {
  if (take_open(number, false)) send_verdict(number & ~link_mask, verdict, text, rewritten);
}

void PolicyServerStub::filtered(std::uint64_t number, bool listed) {
  if (take_open(number, true)) {
    send(FrameKind::policy_filtered, number & ~link_mask, listed ? 1 : 0);
  }
}

void PolicyServerStub::changed() {
  send(FrameKind::policy_changed, 0);
}

// ---- frames ----------------------------------------------------------------------------------

void PolicyServerStub::send(FrameKind kind, std::uint64_t exchange, std::uint32_t code,
                            std::string_view payload) {
  if (trunk_ == nullptr) return;
  Frame frame;
  frame.kind = kind;
  frame.exchange = exchange;
  frame.code = code;
  trunk_->send(frame, payload);
}

void PolicyServerStub::send_verdict(std::uint64_t exchange, std::uint32_t verdict,
                                    const VerdictText &text, std::string_view rewritten) {
  if (trunk_ == nullptr) return;
  const std::string head = to_bytes(text);
  Frame frame;
  frame.kind = FrameKind::policy_verdict;
  frame.exchange = exchange;
  frame.code = verdict;
  frame.value = head.size();
  const bh_str parts[] = {bh::str(head), bh::str(rewritten)};
  if (trunk_->send(frame, parts, 2) == BH_E_LIMIT) {
    send(FrameKind::policy_refused, exchange, 0, "its output exceeds the message size limit");
  }
}

}  // namespace bulkhead::link
