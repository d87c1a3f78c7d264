#include "route/calls.hpp"

#include <algorithm>

#include "bulkhead/cpp/basics.hpp"
#include "route/approval_form.hpp"
#include "route/json_rpc.hpp"
#include "route/lane.hpp"
#include "route/protocol.hpp"
#include "route/upstream.hpp"
#include "route/view.hpp"

namespace bulkhead {
namespace {

Gate::Decision no_place() {
  return Gate::failed("the pool for blocking work is full; try again later");
}

Gate::Decision too_much() {
  return Gate::failed("too much waits for the policy (limits.policy_waiting_bytes)");
}

std::string within_commit_time() {
  return " within " + std::to_string(BH_TELEMETRY_COMMIT_MS) + " ms";
}

// Several that ask come as one text, with commas between them. True: each of `now` is in `asked`.
bool has_rules(std::string_view asked, std::string_view now) {
  constexpr std::string_view between = ", ";
  if (now.empty()) return asked.empty();
  const auto one_of = [&](std::string_view rule) {
    for (std::string_view rest = asked;;) {
      const std::size_t end = std::min(rest.find(between), rest.size());
      if (rest.substr(0, end) == rule) return true;
      if (end == rest.size()) return false;
      rest.remove_prefix(end + between.size());
    }
  };
  for (;;) {
    const std::size_t end = std::min(now.find(between), now.size());
    if (!one_of(now.substr(0, end))) return false;
    if (end == now.size()) return true;
    now.remove_prefix(end + between.size());
  }
}

bool is_subscription(mcp::Method method) {
  return method == mcp::Method::resources_subscribe || method == mcp::Method::resources_unsubscribe;
}

// Tools that a pool may share go to any of its connections, everything else to the first.
Lane *lane_of(const CallInHand &hand) {
  const Target &target = hand.target;
  Upstream &upstream = target.lane->upstream();
  const bool tool = hand.message.scan->method == mcp::Method::tools_call;
  if (!tool || upstream.def().pool_size < 2) return target.lane;
  std::string scratch;
  return upstream.share(*target.lane, mcp::unquote(target.resolved.original_token, &scratch));
}

}  // namespace

// ---- beginning -------------------------------------------------------------------------------

void Calls::begin(Session &s, Incoming &request, CallInHand &hand) {
  if (Exchange *e = open(s, request, hand.target)) advance(*e, hand, Step::pins);
}

Exchange *Calls::open(Session &s, Incoming &request, const Target &target) {
  const mcp::Scan &scan = *request.message.scan;
  if (stopping_) {
    needs_.answers.error(request, code::internal_error,
                         "the gateway is stopping; this has not run");
    return nullptr;
  }
  // Those that wait for a person have a bound of their own.
  const std::uint64_t most = needs_.limits.in_flight_per_session;
  if (s.exchanges.size - needs_.desk.waiting_of(s.handle) >= most) {
    needs_.answers.error(
        request, code::timeout,
        "too many calls are in flight in this session (limits.in_flight_per_session = " +
            std::to_string(most) + "); wait for answers");
    return nullptr;
  }
  Exchange *e = needs_.exchanges.open();
  if (e == nullptr) {
    needs_.answers.error(request, code::timeout,
                         "the gateway has too many calls in flight; try again");
    return nullptr;
  }
  ++needs_.counters.calls;
  ++s.calls;
  e->method = scan.method;
  e->reply = request.reply;
  e->session = &s;
  s.exchanges.push(*e);
  e->client_id.assign(request.id());
  e->client_token.assign(request.message[scan.progress_token]);
  e->process_name.assign(s.process_name);
  std::string scratch;
  e->server.assign(target.lane->upstream().name());
  e->name.assign(mcp::unquote(target.resolved.original_token, &scratch));
  e->start_ns = request.start_ns;
  e->bytes_in = request.message.size();
  if (needs_.recorder.active()) needs_.recorder.begin(*e, request.message.bytes, scan);
  request.recorded = true;  // with the call
  needs_.deadlines.arm(*e, target.lane->upstream().timeout_ms(scan.method, e->name));
  return e;
}

// ---- the steps -------------------------------------------------------------------------------

void Calls::advance(Exchange &e, CallInHand &hand, Step step) {
  for (Next next = step; next.has_value();) next = run(e, hand, *next);
}

Calls::Next Calls::run(Exchange &e, CallInHand &hand, Step step) {
  switch (step) {
    case Step::pins:
      return check_pins(e, hand, Step::judge);
    case Step::judge:
      return judge(e, hand);
    case Step::confirm:
      return confirm(e, hand);
    case Step::record:
      return record(e, hand);
    case Step::send:
      return send(e, hand);
  }
  return std::nullopt;
}

Calls::Next Calls::check_pins(Exchange &e, const CallInHand &hand, Step then) {
  if (needs_.judge.is_approved(e, hand.target)) return then;
  refuse(e, Judge::not_approved());
  return std::nullopt;
}

// A call that was judged before is not counted again, and what a person has allowed is said.
std::uint32_t Calls::flags_of(Exchange &e) noexcept {
  const std::uint32_t again = std::exchange(e.judged, true) ? BH_REQUEST_AGAIN : 0;
  return again | (e.approved ? BH_REQUEST_APPROVED : 0);
}

Calls::Next Calls::judge(Exchange &e, CallInHand &hand) {
  hand.arguments.clear();
  e.rules = rules_;
  // A client can always unsubscribe.
  const bool judged = needs_.gate.decides() && e.method != mcp::Method::resources_unsubscribe;
  if (!judged) return e.waited ? Step::confirm : Step::record;
  if (needs_.judge.checks_later(*hand.message.scan)) {
    check_later(e, hand);
    return std::nullopt;
  }
  const std::uint32_t flags = flags_of(e);
  const Gate::Decision decision = needs_.judge.decide(e, hand.message, hand.target, flags);
  if (decision.verdict == Gate::Verdict::pending) {
    const std::uint64_t id = e.id;
    if (!park(e, hand, Stage::deciding)) needs_.on_unanswered(id, false);
    return std::nullopt;
  }
  needs_.judge.note(e, decision);
  return apply(e, hand, decision);
}

Calls::Next Calls::apply(Exchange &e, CallInHand &hand, const Gate::Decision &decision) {
  const Step on = e.waited ? Step::confirm : Step::record;
  if (decision.verdict == Gate::Verdict::allow) return on;
  if (decision.verdict == Gate::Verdict::rewrite) {
    hand.arguments = decision.replacement;
    if (!hand.message.scan->arguments.empty()) return on;
    refuse(e, Gate::refusal(decision.rule, "there are no arguments to rewrite"));
    return std::nullopt;
  }
  if (!decision.asks) {
    refuse(e, decision);
    return std::nullopt;
  }
  // A person's answer is to the rules that asked: another one asks anew.
  if (e.approved && has_rules(e.approved_rule, decision.rule)) return on;
  return ask_person(e, hand, decision);
}

Calls::Next Calls::ask_person(Exchange &e, const CallInHand &hand, const Gate::Decision &decision) {
  Gate::Decision refusal;
  switch (needs_.desk.ask(e, hand.message, decision, &refusal)) {
    case ApprovalDesk::Asked::granted:
      return e.waited ? Step::confirm : Step::record;
    case ApprovalDesk::Asked::refused:
      refuse(e, refusal);
      return std::nullopt;
    case ApprovalDesk::Asked::waits:
      break;
  }
  e.approved_rule = decision.rule;
  if (park(e, hand, Stage::approving)) needs_.desk.ask_client(e);
  return std::nullopt;
}

// It has waited: its definition may be another one by now, and the server has its whole time.
Calls::Next Calls::confirm(Exchange &e, const CallInHand &hand) {
  const Upstream &upstream = hand.target.lane->upstream();
  needs_.deadlines.arm(e, upstream.timeout_ms(e.method, e.name));
  return check_pins(e, hand, Step::record);
}

// Where a telemetry plugin commits, the intent is on disk before the call is sent.
Calls::Next Calls::record(Exchange &e, const CallInHand &hand) {
  if (!hand.arguments.empty() && needs_.recorder.active()) {
    needs_.recorder.note_rewritten(e, hand.arguments);
  }
  if (!needs_.recorder.commits() || e.account.intent != 0) return Step::send;
  if (park(e, hand, Stage::recording)) {
    needs_.recorder.intent(e);
    if (e.account.intent != 0) {
      intents_.emplace_back(needs_.recorder.barrier(), e.id);
      return std::nullopt;
    }
    take(e);
    refuse_unrecorded(e,
                      "too much waits to be put on record (limits.policy_waiting_bytes); the call "
                      "has not run");
  }
  return std::nullopt;
}

Calls::Next Calls::send(Exchange &e, const CallInHand &hand) {
  Lane &lane = *lane_of(hand);
  e.account.dispatched = true;
  e.stage = Stage::at_server;
  attach(e, lane);
  if (is_subscription(e.method) && !subscription_goes_on(e, hand)) return std::nullopt;
  lane.submit(e, hand);
  return std::nullopt;
}

// False: answered here.
bool Calls::subscription_goes_on(Exchange &e, const CallInHand &hand) {
  Lane &lane = *hand.target.lane;
  // A policy may have taken so long that no session uses the lane, or another one does.
  const auto &own = e.session->view->lanes;
  if (std::find(own.begin(), own.end(), &lane) == own.end()) {
    fail(e, code::internal_error,
         "server \"" + lane.upstream().name() +
             "\" was changed, or the session began anew, before a policy had decided; it has not "
             "run: send it again",
         BH_OUTCOME_ERROR);
    return false;
  }
  const std::string token(hand.message[hand.target.range]);
  if (!needs_.subscriptions.begin(e, lane, token)) return true;
  const ReplyTo reply = e.reply;
  const std::string id = e.client_id;
  finish(e, BH_OUTCOME_OK, 0, {}, {}, "{}");
  needs_.answers.result(reply, id, "{}");
  return false;
}

// ---- parking ---------------------------------------------------------------------------------

std::uint64_t Calls::policy_time_ms(std::size_t bytes) const noexcept {
  constexpr std::size_t bytes_per_ms = 8'192;
  return needs_.limits.policy_timeout_ms + bytes / bytes_per_ms;
}

std::uint64_t Calls::time_ms(Stage stage, std::size_t bytes) const noexcept {
  if (stage == Stage::approving) return needs_.limits.approval_timeout_ms;
  return stage == Stage::recording ? std::uint64_t{BH_TELEMETRY_COMMIT_MS} : policy_time_ms(bytes);
}

// False: it is refused, since too much waits. What waits for a person has bounds of its own.
bool Calls::park(Exchange &e, const CallInHand &hand, Stage stage) {
  const std::size_t bytes = hand.message.size() + hand.arguments.size();
  const bool counted = stage != Stage::approving;
  if (counted && !needs_.waiting.take(bytes)) {
    if (stage != Stage::recording) {
      refuse(e, too_much());
    } else {
      refuse_unrecorded(e,
                        "too much waits to be put on record (limits.policy_waiting_bytes); the "
                        "call has not run");
    }
    return false;
  }
  e.parked = std::make_unique<ParkedCall>(parked(hand));
  e.parked->bytes = counted ? bytes : 0;
  e.stage = stage;
  e.waited = true;
  needs_.deadlines.arm(e, time_ms(stage, bytes));
  return true;
}

CallInHand Calls::take(Exchange &e) {
  CallInHand hand = e.parked->in_hand();
  needs_.waiting.give_back(e.parked->bytes);
  e.parked = nullptr;
  e.stage = Stage::open;
  return hand;
}

// The exchange ends while it waits.
void Calls::release(Exchange &e) {
  const Stage stage = std::exchange(e.stage, Stage::open);
  if (stage == Stage::approving) needs_.desk.close(e, ApprovalEnd::withdrawn);
  const bool asked = stage == Stage::checking || stage == Stage::deciding ||
                     stage == Stage::answer_checking || stage == Stage::answer_deciding;
  if (asked) needs_.on_unanswered(e.id, false);
  if (e.parked == nullptr) return;
  needs_.waiting.give_back(e.parked->bytes);
  e.parked = nullptr;
}

// ---- the policy ------------------------------------------------------------------------------

// The policy is asked once the pool has found no duplicate members.
void Calls::check_later(Exchange &e, const CallInHand &hand) {
  if (!park(e, hand, Stage::checking)) return;
  const Message message = e.parked->message.get();
  const std::string_view judged = message[Judge::judged_part(*message.scan)];
  if (needs_.checks.begin(e.id, e.parked->message.bytes(), judged)) return;
  take(e);
  refuse(e, no_place());
}

void Calls::checked(std::uint64_t exchange, bool duplicates) {
  Exchange *e = needs_.exchanges.get(exchange);
  if (e == nullptr) return;  // it ended while it waited
  if (e->stage == Stage::checking) return call_checked(*e, duplicates);
  if (e->stage == Stage::answer_checking) answer_checked(*e, duplicates);
}

void Calls::call_checked(Exchange &e, bool duplicates) {
  Gate::Decision decision = Judge::duplicates_in("arguments hold");
  if (!duplicates) {
    e.rules = rules_;
    decision =
        needs_.judge.decide_checked(e, e.parked->message.get(), e.parked->target, flags_of(e));
    e.stage = Stage::deciding;
    if (decision.verdict == Gate::Verdict::pending) return;
  }
  call_decided(e, decision);
}

void Calls::decided(std::uint64_t exchange, const Gate::Decision &decision) {
  Exchange *e = needs_.exchanges.get(exchange);
  if (e == nullptr) return;
  if (e->stage == Stage::deciding) return call_decided(*e, decision);
  if (e->stage == Stage::answer_deciding) answer_decided(*e, decision);
}

void Calls::call_decided(Exchange &e, const Gate::Decision &decision) {
  CallInHand hand = take(e);
  needs_.judge.note(e, decision);
  const bool refused = decision.verdict == Gate::Verdict::refuse && !decision.asks;
  // The rules that decided have been replaced.
  if (!refused && e.rules != rules_) return advance(e, hand, Step::pins);
  if (const Next next = apply(e, hand, decision)) advance(e, hand, *next);
}

bool Calls::may_be_sent(Exchange &e) {
  if (e.rules == rules_) return true;
  CallInHand hand = take(e);
  detach(e);
  e.account.dispatched = false;
  advance(e, hand, Step::pins);
  return false;
}

void Calls::refuse(Exchange &e, const Gate::Decision &decision) {
  ++needs_.counters.refused_by_policy;
  std::string text = "MCP request blocked by policy";
  if (!decision.rule.empty()) text += " (" + decision.rule + ")";
  if (!decision.reason.empty()) text += ": " + decision.reason;
  const ReplyTo reply = e.reply;
  const std::string id = e.client_id;
  finish(e, BH_OUTCOME_REFUSED, 0, decision.rule, decision.reason);
  needs_.answers.error(reply, id, code::invalid_request, text);
}

// ---- people ----------------------------------------------------------------------------------

void Calls::approval_given(std::uint64_t exchange, bool allow, ApprovalSurface surface,
                           const ApprovalScope &scope) {
  Exchange *e = needs_.exchanges.get(exchange);
  if (e == nullptr || e->stage != Stage::approving) return;
  const ApprovalEnd end = allow ? ApprovalEnd::allowed : ApprovalEnd::denied;
  const auto question = needs_.desk.close(*e, end, surface, scope);
  if (!question) return;
  CallInHand hand = take(*e);
  if (!allow) {
    ++needs_.counters.approvals_denied;
    return refuse(*e, ApprovalDesk::unapproved(e->approved_rule, question->reason,
                                               "and a person has denied it"));
  }
  ++needs_.counters.approvals_allowed;
  // The grant must not hold for a program that has replaced this server.
  if (!needs_.draining.has(&hand.target.lane->upstream())) needs_.desk.grant(*question, scope);
  e->approved = true;
  // The rules may have been replaced while the person thought: what they refuse now is refused.
  advance(*e, hand, Step::judge);
}

Result<void> Calls::answer_approval(const ApprovalAnswer &answer) {
  const auto exchange = needs_.desk.find(answer);
  if (!exchange.has_value()) return std::unexpected(exchange.error());
  approval_given(*exchange, answer.allow, answer.surface, answer.scope);
  return {};
}

void Calls::form_answered(std::uint64_t exchange, const Message &message) {
  const FormAnswer answer = read_approval_form(message.bytes, *message.scan);
  if (!answer.shown) return form_lost(exchange);
  approval_given(exchange, answer.allow, ApprovalSurface::elicitation, answer.scope);
}

void Calls::form_lost(std::uint64_t exchange) {
  const Exchange *e = needs_.exchanges.get(exchange);
  if (e == nullptr || needs_.desk.somebody_watches()) return;
  if (e->session != nullptr && e->session->closing) return;
  withdraw(exchange, "and the client cannot be asked for it");
}

void Calls::withdraw(std::uint64_t exchange, std::string_view why) {
  Exchange *e = needs_.exchanges.get(exchange);
  if (e == nullptr || e->stage != Stage::approving) return;
  const auto question = needs_.desk.close(*e, ApprovalEnd::withdrawn);
  if (!question) return;
  take(*e);
  refuse(*e, ApprovalDesk::unapproved(e->approved_rule, question->reason, why));
}

void Calls::withdraw_questions(const Session &s) {
  std::vector<std::uint64_t> ids;
  for (const Exchange *e = s.exchanges.head; e != nullptr; e = e->session_next) {
    if (e->stage == Stage::approving) ids.push_back(e->id);
  }
  for (const std::uint64_t id : ids) withdraw(id, "and the client has ended its input");
}

// ---- records ---------------------------------------------------------------------------------

void Calls::records_committed() {
  while (!intents_.empty() && needs_.recorder.is_committed(intents_.front().first)) {
    const std::uint64_t id = intents_.front().second;
    intents_.pop_front();
    Exchange *e = needs_.exchanges.get(id);
    if (e == nullptr || e->stage != Stage::recording) continue;
    CallInHand hand = take(*e);
    const bool same_rules = e->rules == rules_;
    if (same_rules) {
      // The server has its whole time, however long the disk took.
      const Upstream &upstream = hand.target.lane->upstream();
      needs_.deadlines.arm(*e, upstream.timeout_ms(e->method, e->name));
    }
    advance(*e, hand, same_rules ? Step::send : Step::pins);
  }
}

// At once: its record would wait for the same disk.
void Calls::refuse_unrecorded(Exchange &e, std::string_view text) {
  ++needs_.counters.refused_unrecorded;
  const ReplyTo reply = e.reply;
  const std::string id = e.client_id;
  finish(e, BH_OUTCOME_ERROR, 0, {}, text, error_object(code::internal_error, text));
  needs_.answers.unrecorded_error(reply, id, code::internal_error, text);
}

// ---- time ------------------------------------------------------------------------------------

void Calls::timed_out(Exchange &e) {
  switch (e.stage) {
    case Stage::approving:
      return approval_expired(e);
    case Stage::checking:
    case Stage::deciding:
      return policy_timed_out(e, false);
    case Stage::answer_checking:
    case Stage::answer_deciding:
      return policy_timed_out(e, true);
    case Stage::recording:
      take(e);
      return refuse_unrecorded(e, "the gateway could not put the call on record" +
                                      within_commit_time() + "; it has not run");
    case Stage::open:
    case Stage::at_server:
      return server_timed_out(e);
  }
}

void Calls::approval_expired(Exchange &e) {
  const auto question = needs_.desk.close(e, ApprovalEnd::expired);
  take(e);
  ++needs_.counters.approvals_expired;
  refuse(e, ApprovalDesk::unapproved(
                e.approved_rule, question ? question->reason : std::string(),
                "and nobody has given it within " + std::to_string(e.timeout_ms) + " ms"));
}

void Calls::policy_timed_out(Exchange &e, bool about_answer) {
  const std::uint64_t id = e.id;
  take(e);
  ++needs_.counters.policy_timeouts;
  const Gate::Decision decision = Gate::timed_out(e.timeout_ms);
  needs_.log(BH_LOG_WARN, decision.reason + ": " + (about_answer ? "a result" : "a call") +
                              " of \"" + e.name + "\" at \"" + e.server + "\" is refused");
  about_answer ? refuse_answer(e, decision) : refuse(e, decision);
  needs_.on_unanswered(id, true);
}

void Calls::server_timed_out(Exchange &e) {
  ++needs_.counters.timeouts;
  const std::string server = e.lane != nullptr ? e.lane->upstream().name() : std::string();
  fail_and_retract(e, code::timeout,
                   "server \"" + server + "\" did not answer " +
                       std::string(mcp::to_string(e.method)) +
                       (e.name.empty() ? "" : " \"" + e.name + "\"") + " within " +
                       std::to_string(e.timeout_ms) + " ms",
                   BH_OUTCOME_TIMEOUT);
}

}  // namespace bulkhead
