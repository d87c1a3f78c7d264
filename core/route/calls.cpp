#include "route/calls.hpp"

#include <algorithm>

#include "bulkhead/cpp/basics.hpp"
#include "route/json_rpc.hpp"
#include "route/lane.hpp"
#include "route/protocol.hpp"
#include "route/repeated_request.hpp"
#include "route/upstream.hpp"
#include "route/view.hpp"

namespace bulkhead {
namespace {

Gate::Decision too_many_rounds() {
  return Gate::failed("the rules changed each time the call was evaluated");
}

Gate::Decision no_place() {
  return Gate::failed("the pool for blocking work is full; try again later");
}

constexpr std::string_view too_many_unrecorded =
    "too much data is waiting to be recorded (limits.policy_waiting_bytes); the call has not run";

std::string within_commit_time() {
  return " within " + std::to_string(BH_TELEMETRY_COMMIT_MS) + " ms";
}

// Returns true if every rule in `now` is also in `asked`. Both contain the names of the rules that
// require approval, separated by ", ". If `now` is empty, `asked` must be empty as well.
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

// Returns true for requests about a task that the policy does not evaluate, because it evaluated
// the call that created the task. tasks/update contains new data for the tool, and is evaluated
// like a call of the tool.
bool has_only_task_id(const Call &call) {
  const bool updates = call.method == mcp::Method::tasks_update ||
                       (call.bridge != nullptr && call.bridge->send == mcp::Method::tasks_update);
  return is_task_method(call.method) && !updates;
}

// Returns the lane for a call. Calls to tools that a pool may share are sent on any of its
// connections; all other calls are sent on the first connection. Calls that may create a task
// (`tasks`) also use the first connection, because the other processes do not know the task.
Lane *lane_for(const CallInHand &hand, bool tasks) {
  const Target &target = hand.target;
  Upstream &upstream = target.lane->upstream();
  const bool tool = hand.message.scan->method == mcp::Method::tools_call;
  if (!tool || tasks || upstream.def().pool_size < 2) return target.lane;
  std::string scratch;
  return upstream.share(*target.lane, mcp::unquote(target.resolved.original_token, &scratch),
                        target.resolved);
}

// Returns true if a requestState for the client may have to be sealed after the call has been sent,
// and the values for it have not been kept yet. The server may be of 2026-07-28 and have a state of
// its own, or it may ask the client.
bool may_need_state(const Session &s, const Call &call, const Lane &lane) {
  constexpr ClientCaps askable = cap::elicitation | cap::sampling | cap::roots;
  if (!s.repeats_requests || call.request.kept.any()) return false;
  if (lane.upstream().tools != nullptr && !lane.server_caps().asks_input) return false;
  const std::string_view revision = lane.revision();
  return (s.caps & askable) != 0 || revision.empty() || revision == stateless_revision;
}

}  // namespace

// ---- new calls -------------------------------------------------------------------------------

void Calls::begin(Session &s, Incoming &request, CallInHand &hand) {
  Call *call = open(s, request, hand.target);
  if (call == nullptr) return;
  if (loop().running()) {
    call->parked = std::make_unique<ParkedCall>(parked(hand));
    return loop().post(*call, CallEvent::begun);
  }
  const CallLoop::Run run(loop());
  advance(*call, hand, Step::pins);
}

Call *Calls::open(Session &s, Incoming &request, const Target &target) {
  const mcp::Scan &scan = *request.message.scan;
  if (stopping_) {
    needs_.answers.error(request, code::internal_error,
                         "the gateway is stopping; the request has not run");
    return nullptr;
  }
  // Calls that wait for human approval have a separate limit. A sessionless request has already
  // been counted, and Listens limits the requests that it sends for its clients.
  const std::uint64_t most = needs_.limits.in_flight_per_session;
  if (!s.is_sessionless() && s.open_calls.size >= most + s.load->approvals) {
    needs_.answers.error(
        request, code::timeout,
        "too many calls are in flight in this session (limits.in_flight_per_session = " +
            std::to_string(most) + "); wait for responses");
    return nullptr;
  }
  Call *call = needs_.calls.open();
  if (call == nullptr) {
    needs_.answers.error(request, code::timeout,
                         "the gateway has too many calls in flight; try again later");
    return nullptr;
  }
  ++needs_.counters.calls;
  ++s.calls;
  ++s.load->calls;
  call->method = scan.method;
  call->request.reply = request.reply;
  call->session = &s;
  s.open_calls.push(*call);
  call->request.id.assign(request.id());
  call->request.progress_token.assign(request.message[scan.progress_token]);
  call->request.process_name.assign(s.process_name);
  std::string scratch;
  call->server.assign(target.lane->upstream().name());
  if (is_task_method(scan.method)) {
    call->name.assign(target.tool);
    call->request.task_id.assign(request.message[target.range]);
  } else {
    call->name.assign(mcp::unquote(target.resolved.original_token, &scratch));
  }
  call->start_ns = request.start_ns;
  call->bytes_in = request.message.size();
  if (needs_.recorder.active()) needs_.recorder.begin(*call, request.message.bytes, scan);
  request.recorded = true;  // recorded together with the call
  needs_.deadlines.arm(*call, target.lane->upstream().timeout_ms(scan.method, call->name));
  return call;
}

// ---- the steps -------------------------------------------------------------------------------

void Calls::advance(Call &call, CallInHand &hand, Next next) {
  while (next.has_value()) {
    next = run(call, hand, *next);
    // Between two steps, the call is not waiting, so only events that end the call have an effect.
    if (!next.has_value() || call.events.empty()) continue;
    handle_events(call);
    if (call.ended()) return;
  }
}

Calls::Next Calls::run(Call &call, CallInHand &hand, Step step) {
  switch (step) {
    case Step::pins:
      return check_pins(call, hand, Step::judge);
    case Step::judge:
      return judge(call, hand);
    case Step::confirm:
      return confirm(call, hand);
    case Step::record:
      return record(call, hand);
    case Step::send:
      return send(call, hand);
  }
  return std::nullopt;
}

Calls::Next Calls::check_pins(Call &call, const CallInHand &hand, Step then) {
  if (has_only_task_id(call)) return then;
  if (call.redefined > max_rounds) {
    refuse(call, Gate::failed("the tool's definition changed each time the call was evaluated"));
    return std::nullopt;
  }
  const Resolved &resolved = hand.target.resolved;
  const bool covered = !call.approved || resolved.kind != ItemKind::tool ||
                       call.approved_definition == resolved.definition_hash;
  if (covered && needs_.judge.is_approved(call, hand.target)) return then;
  refuse_redefined(call, hand.target, {});
  return std::nullopt;
}

// Called after a wait. If the definition of the call's target has changed, returns true, and the
// call will be evaluated again before it is sent.
bool Calls::is_outdated(Call &call, Target *target) {
  if (has_only_task_id(call) || !Judge::renew_definition(call, target)) return false;
  call.rules = 0;
  ++call.redefined;
  return true;
}

// Called when the lane can send a queued call. Like is_outdated(), for the connections of a pool:
// the lane must still list the definition of the call's target, and if pins are enforced, no
// connection may list a definition that is not approved.
bool Calls::is_outdated_in_pool(Call &call) {
  const Target &target = call.parked->target;
  const Lane &lane = *call.exchange->lane;
  if (has_only_task_id(call) || lane.upstream().def().pool_size < 2) return false;
  const bool same = &lane == target.lane || lists_definition(lane, target.resolved);
  if (same && needs_.judge.is_approved(call, target)) return false;
  call.rules = 0;
  ++call.redefined;
  return true;
}

// Returns the flags for a policy request. They tell the policy whether the call was evaluated
// before, so that it is not counted again, and whether a human has approved it.
std::uint32_t Calls::flags_of(Call &call) noexcept {
  const std::uint32_t again = std::exchange(call.judged, true) ? BH_REQUEST_AGAIN : 0;
  return again | (call.approved ? BH_REQUEST_APPROVED : 0);
}

Calls::Next Calls::judge(Call &call, CallInHand &hand) {
  hand.arguments.clear();
  call.rules = rules_;
  // A client can always unsubscribe.
  const bool judged = needs_.gate.decides() && call.method != mcp::Method::resources_unsubscribe &&
                      !has_only_task_id(call);
  if (!judged) return call.waited ? Step::confirm : Step::record;
  if (needs_.judge.checks_later(*hand.message.scan)) {
    check_later(call, hand);
    return std::nullopt;
  }
  if (++hand.judged > max_rounds) {
    refuse(call, too_many_rounds());
    return std::nullopt;
  }
  const std::uint32_t flags = flags_of(call);
  const Gate::Decision decision = needs_.judge.decide(call, hand.message, hand.target, flags);
  if (decision.verdict == Gate::Verdict::pending) {
    const std::uint64_t id = call.id;
    if (!park(call, hand, Stage::deciding)) needs_.on_unanswered(id, false);
    return std::nullopt;
  }
  needs_.judge.note(call, decision);
  return apply(call, hand, decision);
}

Calls::Next Calls::apply(Call &call, CallInHand &hand, const Gate::Decision &decision) {
  const bool refused = decision.verdict == Gate::Verdict::refuse && !decision.asks;
  if (!refused && call.rules != rules_) {  // the rules changed before the verdict
    // A budget that requires approval has not counted the call.
    if (decision.asks) call.judged = false;
    return Step::pins;
  }
  const Step on = call.waited ? Step::confirm : Step::record;
  if (decision.verdict == Gate::Verdict::allow) return on;
  if (decision.verdict == Gate::Verdict::rewrite) {
    hand.arguments = decision.replacement;
    if (!hand.message.scan->arguments.empty() && has_arguments(call.method)) return on;
    refuse(call, Gate::refusal(decision.rule, "there are no arguments to rewrite"));
    return std::nullopt;
  }
  if (!decision.asks) {
    refuse(call, decision);
    return std::nullopt;
  }
  // An approval is valid for the rules that required it; any other rule requires a new approval.
  if (call.approved && has_rules(call.approved_rule, decision.rule)) return on;
  return ask_person(call, hand, decision);
}

// Called after the call has waited. The tool's definition is checked again because it may have
// changed, and the server gets its full time-out.
Calls::Next Calls::confirm(Call &call, const CallInHand &hand) {
  const Upstream &upstream = hand.target.lane->upstream();
  needs_.deadlines.arm(call, upstream.timeout_ms(call.method, call.name));
  return check_pins(call, hand, Step::record);
}

// If a telemetry plugin commits records, the call is sent only after the intent record is on disk.
Calls::Next Calls::record(Call &call, const CallInHand &hand) {
  if (!hand.arguments.empty() && needs_.recorder.active()) {
    needs_.recorder.note_rewritten(call, hand.arguments);
  }
  if (!needs_.recorder.commits() || call.account.intent != 0) return Step::send;
  if (park(call, hand, Stage::recording)) {
    needs_.recorder.intent(call);
    if (call.account.intent != 0) {
      intents_.emplace_back(needs_.recorder.barrier(), call.id);
      records_committed();  // a plugin may have committed it already
      return std::nullopt;
    }
    needs_.parking.take(call);
    refuse_unrecorded(call, "too many records are waiting to be stored; the call has not run");
  }
  return std::nullopt;
}

// Returns true if the client's request contains answers to a server's input requests (tasks/update
// always does) and a policy must evaluate such answers. Inside a request, the policy cannot
// evaluate them one by one.
bool Calls::has_unjudged_inputs(const Call &call, const CallInHand &hand) const {
  if (!needs_.gate.judges_inputs() || call.session == nullptr) return false;
  if (call.method == mcp::Method::tasks_update) return true;
  return call.session->repeats_requests && !Repetition::of(hand.message).responses.empty();
}

Calls::Next Calls::send(Call &call, const CallInHand &hand) {
  if (call.rules != rules_) return Step::pins;
  if (has_unjudged_inputs(call, hand)) {
    needs_.ends.fail(call, code::invalid_params,
                     "params.inputResponses cannot be forwarded, because rules about inputs cannot "
                     "evaluate them; the request has not run",
                     BH_OUTCOME_ERROR);
    return std::nullopt;
  }
  const bool tasks = !hand.message.scan->task.empty() ||
                     (call.session != nullptr && (call.session->caps & cap::tasks) != 0);
  Lane &lane = *lane_for(hand, tasks);
  if (is_subscription(call.method) && !continues_subscription(call, hand)) return std::nullopt;
  Exchange *exchange = needs_.exchanges.open();
  if (exchange == nullptr) {
    needs_.ends.fail(call, code::timeout, "the gateway has too many open requests; try again later",
                     BH_OUTCOME_ERROR);
    return std::nullopt;
  }
  if (const Session *s = call.session; s != nullptr && may_need_state(*s, call, lane)) {
    std::string scratch;
    call.request.kept.keep(kept_, s->load, mcp::unquote(hand.message[hand.target.range], &scratch),
                           hand.message[hand.message.scan->arguments]);
  }
  exchange->method = call.method;
  exchange->call = &call;
  exchange->timeout_ms = call.timeout_ms;
  call.exchange = exchange;
  call.judges_inputs = needs_.gate.judges_inputs();
  call.account.dispatched = true;
  call.account.server_revision = revision_number(lane.revision());
  call.stage = Stage::at_server;
  lane.attach(*exchange);
  lane.submit(*exchange, hand);
  return std::nullopt;
}

// Called before a subscription request is sent. Returns false if the request was answered here and
// must not be sent.
bool Calls::continues_subscription(Call &call, const CallInHand &hand) {
  Lane &lane = *hand.target.lane;
  // While the policy was deciding, the lane may have been released, or may now belong to another
  // session.
  const auto &own = call.session->view->lanes;
  if (std::find(own.begin(), own.end(), &lane) == own.end()) {
    needs_.ends.fail(call, code::internal_error,
                     "server \"" + lane.upstream().name() +
                         "\" was changed, or the session was restarted, before the call was sent; "
                         "the call has not run: send it again",
                     BH_OUTCOME_ERROR);
    return false;
  }
  const std::string token(hand.message[hand.target.range]);
  if (!needs_.subscriptions.begin(call, lane, token)) return true;
  needs_.ends.finish(call, BH_OUTCOME_OK, 0, {}, {}, "{}");
  needs_.answers.result(call.request.reply, call.request.id, "{}");
  return false;
}

// ---- queued events ---------------------------------------------------------------------------

void Calls::handle_events(Call &call) {
  while (!call.ended() && !call.events.empty()) handle(call, call.events.pop());
}

// Handles a queued event. An event that does not match the current stage has no effect.
void Calls::handle(Call &call, CallEvent event) {
  CallEvents &events = call.events;
  switch (event) {
    case CallEvent::begun:
      return resume(call, Step::pins);
    case CallEvent::decided:
      return take_decision(call, Gate::Decision(events.details().decision));
    case CallEvent::checked:
      return take_checked(call, events.details().duplicates);
    case CallEvent::approved:
      return take_approval(call, events.details().allowed, events.details().surface,
                           ApprovalScope(events.details().scope));
    case CallEvent::withdrawn:
      return take_withdrawal(call, events.details().why);
    case CallEvent::committed:
      if (call.stage == Stage::recording) resume(call, Step::confirm);
      return;
    case CallEvent::input:
      return needs_.rounds.proceed(call);
    case CallEvent::again:
      return resume(call, Step::pins);
    case CallEvent::timed_out:
      // If a step has armed the deadline of another stage in the meantime, this time-out is
      // outdated.
      if (call.deadline_tick == 0) take_time_out(call);
      return;
    case CallEvent::answered:
    case CallEvent::failed:
      return needs_.call_answers.handle(call, event);
    case CallEvent::cancelled:
    case CallEvent::gone:
    case CallEvent::ended:
      return needs_.ends.handle(call, event);
    case CallEvent::count:
      return;
  }
}

void Calls::resume(Call &call, Step step) {
  CallInHand hand = needs_.parking.take(call);
  const bool outdated = is_outdated(call, &hand.target);
  advance(call, hand, outdated ? Step::pins : step);
}

// ---- parking ---------------------------------------------------------------------------------

// Parks the call. If too much data is waiting, refuses the call and returns false.
bool Calls::park(Call &call, const CallInHand &hand, Stage stage) {
  if (needs_.parking.park(call, hand, stage)) return true;
  stage == Stage::recording ? refuse_unrecorded(call, too_many_unrecorded)
                            : refuse(call, Gate::waits_full());
  return false;
}

// ---- the policy ------------------------------------------------------------------------------

// Starts checking for duplicate members in the pool. The policy is asked only if there are none.
void Calls::check_later(Call &call, const CallInHand &hand) {
  if (!park(call, hand, Stage::checking)) return;
  const Message message = call.parked->message.get();
  const std::string_view judged = message[Judge::judged_part(*message.scan)];
  if (needs_.checks.begin(call.id, call.parked->message.bytes(), judged)) return;
  needs_.parking.take(call);
  refuse(call, no_place());
}

void Calls::checked(std::uint64_t id, bool duplicates) {
  Call *call = needs_.calls.get(id);
  if (call == nullptr) return;  // the call ended while it was waiting
  if (loop().running()) return loop().post_checked(*call, duplicates);
  const CallLoop::Run run(loop());
  take_checked(*call, duplicates);
}

void Calls::take_checked(Call &call, bool duplicates) {
  if (call.stage == Stage::answer_checking) return needs_.call_answers.checked(call, duplicates);
  if (call.stage != Stage::checking) return;
  Gate::Decision decision = Judge::duplicates_in("arguments contain");
  if (!duplicates) {
    is_outdated(call, &call.parked->target);
    call.rules = rules_;
    decision = needs_.judge.decide_checked(call, call.parked->message.get(), call.parked->target,
                                           flags_of(call));
    call.stage = Stage::deciding;
    if (decision.verdict == Gate::Verdict::pending) return;
  }
  call_decided(call, decision);
}

void Calls::decided(std::uint64_t id, const Gate::Decision &decision) {
  Call *call = needs_.calls.get(id);
  if (call == nullptr) return;
  if (loop().running()) return loop().post_decision(*call, decision);
  const CallLoop::Run run(loop());
  take_decision(*call, decision);
}

void Calls::take_decision(Call &call, const Gate::Decision &decision) {
  if (call.stage == Stage::answer_deciding) return needs_.call_answers.decided(call, decision);
  if (call.stage == Stage::deciding) call_decided(call, decision);
}

void Calls::call_decided(Call &call, const Gate::Decision &decision) {
  CallInHand hand = needs_.parking.take(call);
  is_outdated(call, &hand.target);
  needs_.judge.note(call, decision);
  advance(call, hand, apply(call, hand, decision));
}

bool Calls::may_be_sent(Call &call) {
  if (call.events.ends_call()) return false;
  const bool outdated = is_outdated(call, &call.parked->target) || is_outdated_in_pool(call);
  if (!outdated && call.rules == rules_) return true;
  send_again(call);
  return false;
}

void Calls::send_again(Call &call) {
  const CallLoop::Run run(loop());
  needs_.ends.detach(call);
  call.account.dispatched = may_have_run(call);  // in an earlier round
  call.account.server_revision = 0;
  loop().post(call, CallEvent::again);
}

void Calls::refuse(Call &call, const Gate::Decision &decision) {
  ++needs_.counters.refused_by_policy;
  std::string text = "MCP request blocked by policy";
  if (!decision.rule.empty()) text += " (" + decision.rule + ")";
  if (!decision.reason.empty()) text += ": " + decision.reason;
  needs_.ends.finish(call, BH_OUTCOME_REFUSED, 0, decision.rule, decision.reason);
  needs_.answers.error(call.request.reply, call.request.id, code::invalid_request, text);
}

// ---- records ---------------------------------------------------------------------------------

void Calls::records_committed() {
  const CallLoop::Run run(loop());
  while (!intents_.empty()) {
    const auto [below, id] = intents_.front();
    if (!needs_.recorder.is_committed(below)) return;
    // is_committed() queries the needs of plugins. From inside that query, a plugin may have called
    // this function and changed the queue.
    if (intents_.empty() || intents_.front().second != id) continue;
    intents_.pop_front();
    if (Call *call = needs_.calls.get(id)) loop().post(*call, CallEvent::committed);
  }
}

// Sends the error without waiting for its record, which would be stored on the same disk.
void Calls::refuse_unrecorded(Call &call, std::string_view text) {
  ++needs_.counters.refused_unrecorded;
  needs_.ends.finish(call, BH_OUTCOME_ERROR, 0, {}, text, error_object(code::internal_error, text));
  needs_.answers.unrecorded_error(call.request.reply, call.request.id, code::internal_error, text);
}

// ---- time-outs -------------------------------------------------------------------------------

void Calls::timed_out(Call &call) {
  if (loop().running()) return loop().post(call, CallEvent::timed_out);
  const CallLoop::Run run(loop());
  take_time_out(call);
}

void Calls::take_time_out(Call &call) {
  switch (call.stage) {
    case Stage::approving:
      return approval_expired(call);
    case Stage::checking:
    case Stage::deciding:
      return policy_timed_out(call, false);
    case Stage::answer_checking:
    case Stage::answer_deciding:
      return policy_timed_out(call, true);
    case Stage::recording:
      needs_.parking.take(call);
      return refuse_unrecorded(call, "the gateway could not record the call" +
                                         within_commit_time() + "; it has not run");
    case Stage::open:
    case Stage::queued:
    case Stage::at_server:
    case Stage::suspended:
    case Stage::awaiting_repeat:
      return server_timed_out(call);
    case Stage::asking:
      return needs_.rounds.timed_out(call);
    case Stage::awaiting_list:
      return;  // there is no call yet
  }
}

void Calls::policy_timed_out(Call &call, bool about_answer) {
  const std::uint64_t id = call.id;
  needs_.parking.take(call);
  ++needs_.counters.policy_timeouts;
  const Gate::Decision decision = Gate::timed_out(call.timeout_ms);
  needs_.log(BH_LOG_WARN, decision.reason + ": " +
                              (about_answer ? "the result of a call" : "a call") + " of \"" +
                              call.name + "\" on server \"" + call.server + "\" is rejected");
  about_answer ? needs_.call_answers.refuse(call, decision) : refuse(call, decision);
  needs_.on_unanswered(id, true);
}

void Calls::server_timed_out(Call &call) {
  ++needs_.counters.timeouts;
  std::string text = "server \"" + call.server + "\" did not respond to " +
                     std::string(mcp::to_string(call.method)) +
                     (call.name.empty() ? "" : " \"" + call.name + "\"") + " within " +
                     std::to_string(call.timeout_ms) + " ms";
  needs_.ends.fail_and_retract(
      call, {code::timeout, BH_OUTCOME_TIMEOUT, std::move(text), false, BH_CANCEL_DEADLINE});
}

}  // namespace bulkhead
