#include "route/judged_events.hpp"

#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/policy_request.hpp"

namespace bulkhead {
namespace {

// This bit is set in the numbers of policy requests about events. It is also set in the numbers for
// list items, but those contain a nonzero round number, and the numbers for events do not.
constexpr std::uint64_t event_mark = 1ULL << 63;

Gate::Decision duplicates() {
  return Gate::refusal({}, "the message contains an object with duplicate members");
}

std::uint32_t event_of(JudgedEvent::Kind kind) {
  switch (kind) {
    case JudgedEvent::Kind::ask:
      return BH_EVENT_INPUT_REQUEST;
    case JudgedEvent::Kind::answer:
      return BH_EVENT_INPUT_RESPONSE;
    case JudgedEvent::Kind::to_client:
    case JudgedEvent::Kind::to_server:
      return BH_EVENT_NOTIFICATION;
    case JudgedEvent::Kind::subscription:
      break;
  }
  return 0;
}

std::uint32_t flags_of(JudgedEvent::Kind kind) {
  if (kind == JudgedEvent::Kind::to_server) return BH_REQUEST_TO_SERVER;
  // The policy has already counted the call that created the subscription.
  return kind == JudgedEvent::Kind::subscription ? BH_REQUEST_AGAIN : 0;
}

}  // namespace

JudgedEvents::JudgedEvents(Needs needs) : needs_(std::move(needs)) {}

JudgedEvents::~JudgedEvents() {
  needs_.reactor.forget(this);
}

std::uint64_t JudgedEvents::next_number() noexcept {
  if (++last_ == 0) ++last_;
  return event_mark | last_;
}

bh_policy_request JudgedEvents::request_of(const JudgedEvent &event, const Session &s,
                                           std::string_view body, std::uint64_t number) const {
  bh_policy_request request = policy_request_of(s, needs_.reactor.now_ns());
  request.exchange = number;
  request.method = bh::str(event.method_text);
  request.server = bh::str(event.server);
  request.name = bh::str(event.tool);
  request.arguments = bh::str(body);
  request.event = event_of(event.kind);
  request.flags = flags_of(event.kind);
  return request;
}

bool JudgedEvents::judge(JudgedEvent event, const Session &session, std::string_view body) {
  const std::uint64_t number = next_number();
  event.to.session = session.handle;
  // If a policy evaluates events, it always reads their bodies, even if it does not read the
  // arguments of calls.
  if (body.size() > DuplicateChecks::at_once) {
    Waiting *waiting = keep(std::move(event), number);
    if (waiting == nullptr) return false;
    const KeptText text = waiting->body = kept(body);
    if (!needs_.checks.begin(number, text, *text)) {
      decided(number, Gate::failed("the pool for blocking work is full"));
    }
    return false;
  }
  if (!body.empty() && mcp::has_duplicate_members(body)) {
    refuse(event, duplicates());
    return false;
  }
  const Gate::Decision decision = needs_.gate.decide(request_of(event, session, body, number));
  if (decision.verdict == Gate::Verdict::allow) return true;
  if (decision.verdict != Gate::Verdict::pending) {
    refuse(event, decision);
    return false;
  }
  if (keep(std::move(event), number) == nullptr) needs_.on_unanswered(number, false);
  return false;
}

// Stores the event until the policy has decided. If too much data is pending, refuses the event and
// returns null.
JudgedEvents::Waiting *JudgedEvents::keep(JudgedEvent event, std::uint64_t number) {
  if (!needs_.waiting.take(event.message.size())) {
    refuse(event, Gate::waits_full());
    return nullptr;
  }
  const std::uint64_t deadline =
      needs_.reactor.now_ns() + needs_.limits.policy_timeout_ms * 1'000'000u;
  const auto at = waiting_.emplace(number, Waiting{std::move(event), nullptr, deadline}).first;
  start_timer();
  return &at->second;
}

void JudgedEvents::checked(std::uint64_t number, bool found) {
  if (found) return decided(number, duplicates());
  const auto at = waiting_.find(number);
  if (at == waiting_.end()) return;
  Waiting &waiting = at->second;
  const Session *session = needs_.sessions.find(waiting.event.to.session);
  if (session == nullptr) {
    // The client has disconnected. A request is passed on nevertheless: its server gets a response
    // that states that no client can be asked.
    const auto node = waiting_.extract(at);
    const JudgedEvent &event = node.mapped().event;
    needs_.waiting.give_back(event.message.size());
    if (event.kind == JudgedEvent::Kind::ask) needs_.outcome.pass(event);
    return;
  }
  const KeptText body = std::exchange(waiting.body, nullptr);
  const Gate::Decision decision =
      needs_.gate.decide(request_of(waiting.event, *session, *body, number));
  if (decision.verdict != Gate::Verdict::pending) decided(number, decision);
}

void JudgedEvents::decided(std::uint64_t number, const Gate::Decision &decision) {
  const auto node = waiting_.extract(number);
  if (node.empty()) return;
  const JudgedEvent &event = node.mapped().event;
  needs_.waiting.give_back(event.message.size());
  if (decision.verdict == Gate::Verdict::allow) return needs_.outcome.pass(event);
  refuse(event, decision);
}

void JudgedEvents::refuse(const JudgedEvent &event, const Gate::Decision &decision) {
  ++needs_.counters.refused_by_policy;
  if (needs_.recorder.active()) record(event, decision);
  needs_.outcome.refused(event);
}

void JudgedEvents::record(const JudgedEvent &event, const Gate::Decision &decision) {
  Call refused;
  refused.request.reply.session = event.to.session;
  refused.session = needs_.sessions.find(event.to.session);
  refused.method = event.method;
  refused.server = event.server;
  refused.name = event.tool;
  if (refused.session != nullptr) {
    refused.request.process_name = refused.session->process_name;
    refused.account.trace_id = refused.session->trace_id;
  }
  refused.account.reason = decision.reason;
  refused.start_ns = needs_.reactor.now_ns();
  refused.bytes_in = event.message.size();
  const std::string_view why = decision.verdict == Gate::Verdict::refuse
                                   ? std::string_view(decision.reason)
                                   : std::string_view(
                                         "the policy decided to rewrite this message, but only "
                                         "calls and results can be rewritten");
  // Servers and clients may send any number of these messages, so no queue space is reserved for
  // their records.
  needs_.recorder.record(refused, {BH_OUTCOME_REFUSED, refused.start_ns, 0, decision.rule, why, {}},
                         false);
}

void JudgedEvents::drop_ask(bh_lane lane, std::string_view id) {
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    const JudgedEvent &event = at->second.event;
    if (event.kind != JudgedEvent::Kind::ask || event.lane != lane || event.id != id) continue;
    const std::uint64_t number = at->first;
    needs_.waiting.give_back(event.message.size());
    waiting_.erase(at);
    return needs_.on_unanswered(number, false);
  }
}

// ---- timeouts --------------------------------------------------------------------------------

void JudgedEvents::start_timer() {
  if (timer_ != 0 || waiting_.empty()) return;
  const std::uint64_t now = needs_.reactor.now_ns(), end = waiting_.begin()->second.deadline_ns;
  timer_ = needs_.reactor.timer_start(this, end > now ? (end - now) / 1'000'000 + 1 : 1,
                                      bh::callback(this, [](JudgedEvents &self) {
                                        self.timer_ = 0;
                                        self.expire();
                                        self.start_timer();
                                      }));
}

void JudgedEvents::expire() {
  while (!waiting_.empty() && waiting_.begin()->second.deadline_ns <= needs_.reactor.now_ns()) {
    const std::uint64_t number = waiting_.begin()->first;
    ++needs_.counters.policy_timeouts;
    const Gate::Decision decision = Gate::timed_out(needs_.limits.policy_timeout_ms);
    needs_.log(BH_LOG_WARN, decision.reason + ": a message (" +
                                waiting_.begin()->second.event.method_text.substr(0, 256) +
                                ") is rejected");
    decided(number, decision);
    needs_.on_unanswered(number, true);
  }
}

}  // namespace bulkhead
