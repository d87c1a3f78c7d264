// What a policy judges beside calls: requests of servers to the client, the client's answers, and
// notifications both ways. What it has not judged goes nowhere, as with calls; none of it is a call
// of its own: it is not counted, no person is asked about it, and only what is refused is recorded.
#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
namespace {

// Numbers of questions about events: those of the round of list questions that is never used.
constexpr std::uint64_t event_mark = 1ULL << 63;

std::string method_of(std::string_view message, const mcp::Scan &scan) {
  if (scan.method != mcp::Method::other) return std::string(mcp::to_string(scan.method));
  std::string scratch;
  return std::string(mcp::unquote(scan.method_text.in(message), &scratch));
}

Gate::Decision duplicates() {
  return Gate::refusal({}, "it holds an object with duplicate members");
}

std::string joined(const bh_str *parts, std::uint32_t count) {
  std::string out;
  for (std::uint32_t i = 0; i < count; ++i) out.append(bh::view(parts[i]));
  return out;
}

}  // namespace

bh_policy_request Router::event_request(const Event &event, std::uint64_t number) const {
  bh_policy_request request{};
  request.size = sizeof request;
  request.exchange = number;
  const Session &s = *event.session;
  request.session = s.handle;
  request.transport = bh::str(s.transport);
  request.peer = bh::str(s.address);
  request.principal = bh::str(s.principal);
  request.process_name = bh::str(s.process_name);
  request.session_calls = s.calls;
  request.session_age_ns = reactor_.now_ns() - s.start_ns;
  request.method = bh::str(event.method_text);
  request.server = bh::str(event.upstream->name());
  request.name = bh::str(event.tool);
  request.arguments = bh::str(event.body);
  switch (event.kind) {
    case Event::Kind::ask:
      request.event = BH_EVENT_INPUT_REQUEST;
      break;
    case Event::Kind::answer:
      request.event = BH_EVENT_INPUT_RESPONSE;
      break;
    case Event::Kind::to_server:
      request.flags = BH_REQUEST_TO_SERVER;
      [[fallthrough]];
    case Event::Kind::to_client:
      request.event = BH_EVENT_NOTIFICATION;
      break;
    case Event::Kind::subscription:
      request.flags = BH_REQUEST_AGAIN;  // the call that made it has counted
      break;
  }
  return request;
}

// True: it may go on now. Else it is refused (and that done with), or the decision is pending.
bool Router::passes_event(Event event) {
  if (++last_event_ == 0) ++last_event_;
  const std::uint64_t number = event_mark | last_event_;
  // It is read by those who judge it, whatever they read of calls.
  if (event.body.size() > DuplicateChecks::at_once) {
    const KeptText body = event.large_body = kept(event.body);
    if (!keep_event(std::move(event), number)) return false;
    if (!duplicate_checks_.begin(number, body, *body)) {
      event_decided(number, Gate::failed("the pool for blocking work is full"));
    }
    return false;
  }
  if (!event.body.empty() && mcp::has_duplicate_members(event.body)) {
    refuse_event(event, duplicates());
    return false;
  }
  const Gate::Decision decision = gate_.decide(event_request(event, number));
  if (decision.verdict == Gate::Verdict::allow) return true;
  if (decision.verdict != Gate::Verdict::pending) {
    refuse_event(event, decision);
    return false;
  }
  if (!keep_event(std::move(event), number)) unanswered(number, false);
  return false;
}

// False: it is refused, since too much waits.
bool Router::keep_event(Event event, std::uint64_t number) {
  if (!may_wait(event.message.size())) {
    refuse_event(event, Gate::failed("too much waits for the policy"));
    return false;
  }
  waiting_bytes_ += event.message.size();
  event.to.session = event.session->handle;  // it may go meanwhile
  event.session = nullptr;
  event.server = event.upstream->name();
  event.upstream = nullptr;
  event.body = {};
  event.deadline_ns = reactor_.now_ns() + limits().policy_timeout_ms * 1'000'000u;
  events_.emplace(number, std::move(event));
  start_event_timer();
  return true;
}

const Upstream *Router::upstream_named(std::string_view name) const noexcept {
  for (const auto &upstream : upstreams_) {
    if (upstream->name() == name) return upstream.get();
  }
  return nullptr;
}

void Router::event_checked(std::uint64_t number, bool found) {
  if (found) return event_decided(number, duplicates());
  Event &event = events_.at(number);
  event.session = session(event.to.session);
  event.upstream = upstream_named(event.server);
  // Who it is from or for has gone: nobody waits for it.
  if (event.session == nullptr || event.upstream == nullptr) {
    waiting_bytes_ -= event.message.size();
    events_.erase(number);
    return;
  }
  const KeptText body = std::exchange(event.large_body, nullptr);
  event.body = *body;
  const Gate::Decision decision = gate_.decide(event_request(event, number));
  event.session = nullptr;
  event.upstream = nullptr;
  event.body = {};
  if (decision.verdict != Gate::Verdict::pending) event_decided(number, decision);
}

void Router::event_decided(std::uint64_t number, const Gate::Decision &decision) {
  const auto node = events_.extract(number);
  if (node.empty()) return;
  const Event &event = node.mapped();
  waiting_bytes_ -= event.message.size();
  if (decision.verdict == Gate::Verdict::allow) return pass_event(event);
  refuse_event(event, decision);
}

// ---- what becomes of it ----------------------------------------------------------------------

// The policy has thought about it for a while: who it is from and for may have gone.
void Router::pass_event(const Event &event) {
  mcp::Scan scan;
  mcp::ScanError error;
  const bh_str part = bh::str(event.message);
  WireLane *lane = event.lane == 0 ? nullptr : wire(event.lane);
  switch (event.kind) {
    case Event::Kind::ask:
      if (lane != nullptr && mcp::scan(event.message, &scan, &error)) {
        ask_client(*lane, event.hint, event.message, scan, true);
      }
      return;
    case Event::Kind::answer:
      if (mcp::scan(event.message, &scan, &error)) pass_response(event.ask, event.message, scan);
      return;
    case Event::Kind::to_client:
      if (event.exchange != 0 && exchanges_.get(event.exchange) == nullptr) return;
      return answers_.send(event.to, BH_OUT_EVENT, &part, 1);
    case Event::Kind::to_server:
      if (lane != nullptr) lane->send(BH_LANE_NOTIFICATION, &part, 1);
      return;
    case Event::Kind::subscription:
      return;  // it stays
  }
}

void Router::refuse_event(const Event &event, const Gate::Decision &decision) {
  ++counters_.refused_by_policy;
  if (recorder_.active()) {
    Exchange refused;
    refused.reply.session = event.session != nullptr ? event.session->handle : event.to.session;
    refused.session = session(refused.reply.session);
    refused.method = event.method;
    refused.server = event.upstream != nullptr ? event.upstream->name() : event.server;
    refused.name = event.tool;
    if (refused.session != nullptr) {
      refused.process_name = refused.session->process_name;
      refused.account.trace_id = refused.session->trace_id;
    }
    refused.account.reason = decision.reason;
    refused.start_ns = reactor_.now_ns();
    refused.bytes_in = event.message.size();
    const std::string_view why = decision.verdict == Gate::Verdict::refuse
                                     ? std::string_view(decision.reason)
                                     : std::string_view("this cannot be rewritten");
    // Servers may send any number of them: no place is kept for their records.
    recorder_.record(refused, {BH_OUTCOME_REFUSED, refused.start_ns, 0, decision.rule, why, {}},
                     false);
  }
  if (event.kind == Event::Kind::subscription) {
    end_refused_subscription(event);
  } else if (event.kind == Event::Kind::ask) {
    if (WireLane *lane = wire(event.lane)) {
      refuse_ask(*lane, event.id, event.method, Refused::by_policy);
    }
  } else if (event.kind == Event::Kind::answer) {
    const Ask *found = asks_.get(event.ask);
    if (found == nullptr) return;
    const Ask ask = *found;
    ask_ended(event.ask);
    refuse_ask(static_cast<WireLane &>(*ask.lane), ask.upstream_id, ask.method, Refused::by_policy);
  }
}

// The server has taken its request back.
void Router::drop_asked_event(const WireLane &lane, std::string_view id) {
  for (auto at = events_.begin(); at != events_.end(); ++at) {
    const Event &event = at->second;
    if (event.kind != Event::Kind::ask || event.lane != lane.handle() || event.id != id) continue;
    const std::uint64_t number = at->first;
    waiting_bytes_ -= event.message.size();
    events_.erase(at);
    return unanswered(number, false);
  }
}

// ---- time ------------------------------------------------------------------------------------

void Router::start_event_timer() {
  if (event_timer_ != 0 || events_.empty()) return;
  const std::uint64_t now = reactor_.now_ns(), end = events_.begin()->second.deadline_ns;
  event_timer_ = reactor_.timer_start(
      this, end > now ? (end - now) / 1'000'000 + 1 : 1,
      [](void *arg) {
        auto &self = *static_cast<Router *>(arg);
        self.event_timer_ = 0;
        self.expire_events();
        self.start_event_timer();
      },
      this);
}

void Router::expire_events() {
  while (!events_.empty() && events_.begin()->second.deadline_ns <= reactor_.now_ns()) {
    const std::uint64_t number = events_.begin()->first;
    ++counters_.policy_timeouts;
    const Gate::Decision decision = Gate::timed_out(limits().policy_timeout_ms);
    log(BH_LOG_WARN, decision.reason + ": a message (" +
                         events_.begin()->second.method_text.substr(0, 256) + ") is refused");
    event_decided(number, decision);
    unanswered(number, true);
  }
}

// ---- subscriptions -----------------------------------------------------------------------------

// The rules are others now: what they would not let a client subscribe to ends.
void Router::judge_subscriptions(bh_session handle) {
  std::vector<std::string> tokens;
  if (const Session *s = session(handle)) {
    for (const auto &[token, subscription] : s->subscriptions) tokens.push_back(token);
  }
  for (const std::string &token : tokens) {
    Session *s = session(handle);  // a server in place may do anything when one ends
    if (s == nullptr) return;
    const auto at = s->subscriptions.find(token);
    if (at == s->subscriptions.end()) continue;
    Event event;
    event.kind = Event::Kind::subscription;
    event.session = s;
    event.upstream = &at->second.lane->upstream();
    event.method = mcp::Method::resources_subscribe;
    event.method_text = mcp::to_string(event.method);
    event.tool = at->second.original;
    event.id = token;
    passes_event(std::move(event));
  }
}

// Its client may have made another one of that name meanwhile.
void Router::end_refused_subscription(const Event &event) {
  Session *s = event.session != nullptr ? event.session : session(event.to.session);
  if (s == nullptr) return;
  const auto at = s->subscriptions.find(event.id);
  if (at == s->subscriptions.end() || at->second.original != event.tool) return;
  forget_subscription(*s, event.id);
}

// ---- where they come from --------------------------------------------------------------------

void Router::answer_judged(Session &s, Ask &ask, std::uint64_t handle, std::string_view message,
                           const mcp::Scan &scan) {
  Event event;
  event.kind = Event::Kind::answer;
  event.session = &s;
  event.upstream = &ask.lane->upstream();
  event.method = ask.method;
  event.method_text = mcp::to_string(ask.method);
  const Exchange *e = ask.others.empty() ? exchanges_.get(ask.exchange) : nullptr;
  if (e != nullptr && e->method == mcp::Method::tools_call) event.tool = e->name;
  event.body = scan.result.in(message);
  event.ask = handle;
  event.message = message;
  ask.answered = true;
  if (passes_event(std::move(event))) pass_response(handle, message, scan);
}

void Router::tell(const ReplyTo &to, const Lane &lane, const Exchange *exchange,
                  std::string_view message, const mcp::Scan &scan, const bh_str *parts,
                  std::uint32_t count) {
  if (gate_.judges_notifications()) {
    Session *s = session(to.session);
    if (s == nullptr) return;
    Event event;
    event.kind = Event::Kind::to_client;
    event.session = s;
    event.upstream = &lane.upstream();
    event.method = scan.method;
    event.method_text = method_of(message, scan);
    if (exchange != nullptr) {
      // Progress of a call that has ended meanwhile is none; a log line still is one.
      if (scan.method == mcp::Method::notifications_progress) event.exchange = exchange->id;
      if (exchange->method == mcp::Method::tools_call) event.tool = exchange->name;
    }
    event.body = scan.params.in(message);
    event.to = to;
    event.message = joined(parts, count);
    if (!passes_event(std::move(event))) return;
  }
  answers_.send(to, BH_OUT_EVENT, parts, count);
}

void Router::tell_server(Lane &lane, Session &s, std::string_view message, const mcp::Scan &scan,
                         const bh_str *parts, std::uint32_t count) {
  if (gate_.judges_notifications()) {
    Event event;
    event.kind = Event::Kind::to_server;
    event.session = &s;
    event.upstream = &lane.upstream();
    event.method = scan.method;
    event.method_text = method_of(message, scan);
    event.body = scan.params.in(message);
    event.lane = static_cast<WireLane &>(lane).handle();
    event.message = joined(parts, count);
    if (!passes_event(std::move(event))) return;
  }
  lane.send(BH_LANE_NOTIFICATION, parts, count);
}

}  // namespace bulkhead
