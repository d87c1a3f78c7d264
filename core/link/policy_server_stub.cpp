#include "link/policy_server_stub.hpp"

#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "reactor/post_owned.hpp"

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
    stub.exported_ = false;
    stub.exporting_ = 0;
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

PolicyServerStub::~PolicyServerStub() {
  reactor_.forget(this);
}

void PolicyServerStub::attach(OwnedFd trunk, std::function<void()> on_lost) {
  ++link_;
  ended_ = exported_ = false;
  exporting_ = 0;
  open_.clear();
  on_lost_ = std::move(on_lost);
  trunk_ = std::make_unique<Channel>(reactor_, std::move(trunk), *receiver_,
                                     max_policy_frame_bytes(limits_),
                                     limits_.write_queue_bytes + max_head_bytes, false);
  if (plugin_.policy == nullptr) return send(FrameKind::plugin_failed, 0, 0, plugin_.failure);
  Frame frame;
  frame.kind = FrameKind::policy_needs;
  frame.code = plugin_.policy->needs(plugin_.self);
  frame.value = plugin_.state == nullptr ? 0 : 1;
  trunk_->send(frame);
}

std::uint64_t PolicyServerStub::plugin_number(std::uint64_t exchange) const noexcept {
  return (exchange & ~link_mask) | ((link_ << link_shift) & link_mask);
}

void PolicyServerStub::on_frame(const Frame &frame, std::string_view payload) {
  switch (frame.kind) {
    case FrameKind::policy_end:
      ended_ = true;
      return return_requests();
    case FrameKind::policy_continue:
      return send_held();
    case FrameKind::policy_export:
      return export_state(frame.exchange);
    case FrameKind::policy_import:
      return import_state(frame.exchange, payload);
    case FrameKind::policy_forget:
      open_.erase(plugin_number(frame.exchange));
      return;
    default:
      return on_request(frame, payload);
  }
}

void PolicyServerStub::on_request(const Frame &frame, std::string_view payload) {
  PolicyText text;
  if (plugin_.policy == nullptr || frame.value > payload.size() ||
      payload.size() > limits_.message_bytes + max_head_bytes ||
      !from_bytes(payload.substr(0, frame.value), &text)) {
    return;
  }
  // A request after an export shows that the state was not moved.
  send_held();
  bh_policy_request request = request_of(text);
  request.exchange = plugin_number(frame.exchange);
  ask(frame, request, payload.substr(frame.value), payload);
}

void PolicyServerStub::ask(const Frame &frame, const bh_policy_request &asked,
                           std::string_view text, std::string_view payload) {
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
      status = plugin_.policy->filter(plugin_.self, &request, &error);
      if (status != BH_OK && status != BH_PENDING && status != BH_E_DENIED) {
        log_failure(request, bh::text(error));
      }
      break;
    default:
      return;
  }
  const bool filter = frame.kind == FrameKind::policy_filter;
  if (status == BH_PENDING) {
    Open &open = open_[request.exchange];
    open.kind = static_cast<FrameKind>(frame.kind);
    if (plugin_.state != nullptr && !filter) {
      open.head_bytes = frame.value;
      open.payload = payload;
    }
    return send(FrameKind::policy_waits, frame.exchange);
  }
  if (filter) return send(FrameKind::policy_filtered, frame.exchange, status == BH_OK ? 1 : 0);
  if (status != BH_OK) return send(FrameKind::policy_refused, frame.exchange, 0, bh::text(error));
  send_verdict(
      frame.exchange, verdict.verdict,
      {std::string(bh::view(verdict.rule)), std::string(bh::view(verdict.reason)), verdict.flags},
      bh::view(verdict.arguments));
}

// Logs why the plugin could not decide about a listed item, at most once in 10 s.
void PolicyServerStub::log_failure(const bh_policy_request &request, std::string_view why) {
  if (!plugin_.log || !filter_failures_.may_log(bh::monotonic_ns())) return;
  plugin_.log("could not decide whether \"" + std::string(bh::view(request.name)) +
              "\" of server \"" + std::string(bh::view(request.server)) +
              "\" is listed, so it is not listed: " + std::string(why));
}

// ---- asynchronous verdicts of the plugin --------------------------------------------------------

bool PolicyServerStub::is_open(std::uint64_t number, bool filter) const {
  const auto at = open_.find(number);
  return at != open_.end() && (at->second.kind == FrameKind::policy_filter) == filter;
}

void PolicyServerStub::decided(std::uint64_t number, std::uint32_t verdict, const VerdictText &text,
                               std::string_view rewritten) {
  if (!is_open(number, false)) return;
  if (exported_) {
    std::optional<Verdict> &held = open_[number].held;
    if (!held) held = Verdict{verdict, text, std::string(rewritten)};
    return;
  }
  open_.erase(number);
  send_verdict(number & ~link_mask, verdict, text, rewritten);
}

// Listing an item changes no state, so these answers are never held.
void PolicyServerStub::filtered(std::uint64_t number, bool listed) {
  if (!is_open(number, true)) return;
  open_.erase(number);
  send(FrameKind::policy_filtered, number & ~link_mask, listed ? 1 : 0);
}

void PolicyServerStub::changed() {
  send(FrameKind::policy_changed, 0);
}

// ---- state -------------------------------------------------------------------------------------

void PolicyServerStub::export_state(std::uint64_t number) {
  const auto failed = [&](bh_status status, std::string_view why) {
    send(FrameKind::policy_state, number, static_cast<std::uint32_t>(status), why);
  };
  if (plugin_.state == nullptr) return failed(BH_E_UNSUPPORTED, "the policy has no state");
  bh_state_blob blob{};
  blob.size = sizeof blob;
  bh_error error = bh::make_error();
  const bh_status status = plugin_.state->export_state(plugin_.self, &blob, &error);
  if (status != BH_OK) {
    return failed(status < 0 ? status : BH_E_INTERNAL,
                  error.n == 0 ? std::string_view("export_state failed") : bh::text(error));
  }
  if (blob.bytes.n > BH_STATE_BYTES) {
    return failed(BH_E_LIMIT, "its state has " + std::to_string(blob.bytes.n) +
                                  " bytes; the limit is " + std::to_string(BH_STATE_BYTES));
  }
  if (blob.schema.n == 0 || blob.schema.n > BH_STATE_SCHEMA_BYTES || blob.fd_count != 0) {
    return failed(BH_E_INVALID, "its state has no valid schema, or has descriptors");
  }
  exporting_ = number;
  // Decisions that the plugin has made before the export are part of the state. The host table
  // posts them, so they are sent before this function runs; later ones are held.
  const bh_status posted =
      post_owned(reactor_, this,
                 [this, number,
                  state = to_bytes(StateText{blob.version, link_ & ((1ULL << link_bits) - 1),
                                             bh::view(blob.schema), bh::view(blob.bytes)})] {
                   if (exporting_ != number) return;  // the client stub waits no longer
                   exporting_ = 0;
                   exported_ = true;
                   send(FrameKind::policy_state, number, BH_OK, state);
                 });
  if (posted != BH_OK) failed(posted, "too many functions are posted");
}

void PolicyServerStub::import_state(std::uint64_t number, std::string_view payload) {
  bh_error error = bh::make_error();
  bh_status status = BH_E_UNSUPPORTED;
  StateText text;
  if (plugin_.state == nullptr) {
    bh::fail(&error, status, "the policy accepts no state");
  } else if (!from_bytes(payload, &text) || text.bytes.size() > BH_STATE_BYTES) {
    status = bh::fail(&error, BH_E_INVALID, "the state is malformed");
  } else {
    bh_state_blob blob{};
    blob.size = sizeof blob;
    blob.version = text.version;
    blob.schema = bh::str(text.schema);
    blob.bytes = bh::str(text.bytes);
    status = plugin_.state->import_state(plugin_.self, &blob, &error);
    if (status > 0) status = BH_E_INTERNAL;
    // The request numbers in the state contain the number of the other process's link.
    if (status == BH_OK) link_ = text.link;
  }
  send(FrameKind::policy_imported, number, static_cast<std::uint32_t>(status),
       status != BH_OK && error.n == 0 ? std::string_view("import_state failed") : bh::text(error));
}

// Returns the requests without a verdict, and those whose verdicts are held, to the client stub.
void PolicyServerStub::return_requests() {
  exporting_ = 0;
  if (!std::exchange(exported_, false)) return;
  for (const auto &[number, open] : open_) {
    if (open.kind == FrameKind::policy_filter || trunk_ == nullptr) continue;
    Frame frame;
    frame.kind = FrameKind::policy_returned;
    frame.exchange = number & ~link_mask;
    frame.code = open.kind;
    frame.value = open.head_bytes;
    if (trunk_->send(frame, open.payload) == BH_E_LIMIT) {
      send(FrameKind::policy_refused, frame.exchange, 0,
           "the policy was replaced, and its queue has no room for this message; try again");
    }
  }
  std::erase_if(open_,
                [](const auto &each) { return each.second.kind != FrameKind::policy_filter; });
}

void PolicyServerStub::send_held() {
  exporting_ = 0;
  if (!std::exchange(exported_, false)) return;
  for (const auto &[number, open] : open_) {
    if (!open.held) continue;
    send_verdict(number & ~link_mask, open.held->kind, open.held->text, open.held->rewritten);
  }
  std::erase_if(open_, [](const auto &each) { return each.second.held.has_value(); });
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
  const bool fits = head.size() + rewritten.size() <= limits_.message_bytes + max_head_bytes;
  if (!fits || trunk_->send(frame, parts, 2) == BH_E_LIMIT) {
    send(FrameKind::policy_refused, exchange, 0, "its output exceeds the message size limit");
  }
}

}  // namespace bulkhead::link
