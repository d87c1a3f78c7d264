#include "route/asks.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/json_rpc.hpp"
#include "route/protocol.hpp"
#include "route/splice.hpp"
#include "route/task_forms.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

// Returns the capability that a client must have declared to receive this ask, or 0 if clients
// never receive requests with this method.
ClientCaps capability_for(mcp::Method method) {
  if (method == mcp::Method::roots_list) return cap::roots;
  if (method == mcp::Method::sampling_create_message) return cap::sampling;
  return method == mcp::Method::elicitation_create ? cap::elicitation : ClientCaps{0};
}

// Returns true if the call's name is that of a tool.
bool concerns_tool(const Call &call) {
  return call.method == mcp::Method::tools_call || is_task_method(call.method);
}

// A client that repeats requests can be asked even if its input has ended, because its input ends
// with each request.
bool takes_asks(const Session &client) {
  return client.repeats_requests || !client.input_ended;
}

}  // namespace

Asks::Asks(std::uint32_t first_generation, Needs needs)
    : needs_(std::move(needs)), asks_(first_generation) {}

Asks::~Asks() {
  needs_.reactor.forget(this);
}

// ---- from servers ----------------------------------------------------------------------------

void Asks::request(Lane &lane, std::uint64_t hint, const Message &message) {
  const mcp::Method method = message.scan->method;
  if (method == mcp::Method::ping) {
    const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"), bh::str(message.id()),
                            bh::str(R"(,"result":{}})")};
    return lane.send(BH_LANE_RESPONSE, parts, 3);
  }
  if (method == mcp::Method::roots_list && answer_roots(lane, message)) return;
  const ClientCaps needed = capability_for(method);
  if (hint == 0 && needed != 0) lane.upstream().asks = true;
  if (needed == 0 || (lane.caps() & needed) == 0 || !lane.takes(method)) {
    return refuse(lane, message.id(), method, Refusal::undeclared);
  }
  const bool judges = needs_.gate.judges_inputs();
  ask_client(lane, hint, message, judges ? Judged::no : Judged::yes);
}

// Answers roots/list with the roots from the profile, without asking a client. Returns false if the
// request must be handled like other asks.
bool Asks::answer_roots(Lane &lane, const Message &message) {
  const RootsMode mode = lane.upstream().def().roots_mode();
  if (mode == RootsMode::off) lane.upstream().requested_roots = true;
  if (mode != RootsMode::static_list) return false;
  const std::string roots = compose_roots(lane.upstream().def().root_folders);
  const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"), bh::str(message.id()),
                          bh::str(R"(,"result":)"), bh::str(roots), bh::str("}")};
  lane.send(BH_LANE_RESPONSE, parts, 5);
  return true;
}

void Asks::ask_judged(Lane &lane, std::uint64_t hint, const Message &message, bh_session session) {
  ask_client(lane, hint, message, Judged::late, needs_.sessions.find(session));
}

namespace {

mcp::Range range_of_part(std::string_view message, std::string_view part) {
  if (part.empty()) return {};
  const auto begin = static_cast<std::uint32_t>(part.data() - message.data());
  return {begin, begin + static_cast<std::uint32_t>(part.size())};
}

}  // namespace

Asks::Receiver Asks::receiver_of(Lane &lane, std::uint64_t hint, const Message &message) const {
  Receiver to;
  const RelatedTask related = related_task_in(message[message.scan->meta]);
  if (!related.present) {
    to.client = needs_.attribution.client_of(lane, hint, &to.call);
    return to;
  }
  std::string scratch;
  const TaskNote *task =
      related.id.empty() ? nullptr : lane.task_notes.find(mcp::unquote(related.id, &scratch));
  if (task == nullptr) return to;
  to.task_id = related.id;
  to.task = *task;
  to.client = needs_.attribution.client_of_task(lane, hint, to.task, &to.call);
  return to;
}

void Asks::ask_client(Lane &lane, std::uint64_t hint, const Message &message, Judged judged,
                      const Session *judged_for) {
  const mcp::Method method = message.scan->method;
  const ClientCaps needed = capability_for(method);
  const Receiver to = receiver_of(lane, hint, message);
  if (to.task_id.empty() && related_task_in(message[message.scan->meta]).present) {
    return refuse(lane, message.id(), method, Refusal::unknown_task);
  }
  const bool other = judged == Judged::late && to.client != nullptr &&
                     (judged_for == nullptr || !Attribution::same_client(*judged_for, *to.client));
  if (to.client == nullptr || other || !takes_asks(*to.client) || (to.client->caps & needed) == 0 ||
      has_too_many_asks(*to.client)) {
    return refuse(lane, message.id(), method, Refusal::no_client);
  }
  if (judged == Judged::no && !passes_policy(lane, hint, message, to)) return;
  put(lane, hint, message, to);
}

bool Asks::passes_policy(Lane &lane, std::uint64_t hint, const Message &message,
                         const Receiver &to) {
  JudgedEvent event;
  event.kind = JudgedEvent::Kind::ask;
  event.method = message.scan->method;
  event.method_text = mcp::to_string(event.method);
  event.server = lane.upstream().name();
  const bool sure = to.call != nullptr && concerns_tool(*to.call) &&
                    (hint != 0 || Attribution::other_calls(*to.call).empty());
  if (!to.task_id.empty()) {
    event.tool = to.task.tool;
  } else if (sure) {
    event.tool = to.call->name;
  }
  event.lane = lane.handle();
  event.hint = hint;
  event.id = message.id();
  event.message = message.bytes;
  return needs_.events.judge(std::move(event), *to.client, message[message.scan->params]);
}

void Asks::put(Lane &lane, std::uint64_t hint, const Message &message, const Receiver &to) {
  const mcp::Scan &scan = *message.scan;
  Session &client = *to.client;
  Ask ask;
  ask.session = client.handle;
  ask.lane = &lane;
  ask.upstream_id = message.id();
  ask.upstream_token = message[scan.progress_token];
  ask.method = scan.method;
  ask.call = to.call != nullptr ? to.call->id : 0;
  if (!to.task_id.empty()) ask.tool = to.task.tool;
  if (hint == 0 && to.call != nullptr) {
    ask.others = Attribution::other_calls(*to.call, !to.task_id.empty());
  }
  ask.deadline_ns = deadline_of(client);
  const std::uint64_t handle = insert(ask, client);
  suspend(ask.call);
  for (const std::uint64_t other : ask.others) suspend(other);
  if (client.repeats_requests) return put_as_input(handle, message, to.call);
  const Digits number(handle);
  Splice splice(message.bytes);
  splice.replace(scan.id, number.view());
  splice.replace(scan.progress_token, number.view());
  splice.replace(range_of_part(message.bytes, to.task_id), to.task.client_id);
  const bh_str *parts = splice.parts();
  if (parts == nullptr) {
    remove(handle);
    needs_.on_lost(lane, scan.method);
    return refuse(lane, message.id(), scan.method, Refusal::no_client);
  }
  const ReplyTo reply{client.handle, to.call != nullptr ? to.call->request.reply.stream : 0, 0};
  needs_.answers.send(reply, BH_OUT_ASK, parts, splice.count());
}

// For clients that repeat requests, ParkedInputs enforces this limit.
bool Asks::has_too_many_asks(const Session &client) const {
  return !client.repeats_requests && client.load->asks >= needs_.limits.asks_per_session;
}

std::uint64_t Asks::insert(Ask ask, const Session &client) {
  ask.load = client.load;
  ++ask.load->asks;
  Session *s = needs_.sessions.find(ask.session);
  const std::uint64_t handle = asks_.insert(std::move(ask));
  if (s != nullptr) s->asks.push_back(handle);
  start_timer();
  return handle;
}

// If the client answers by repeating its request, the ask gets more time, so that the wait for the
// repeated request expires before the ask does.
std::uint64_t Asks::deadline_of(const Session &client) const {
  constexpr std::uint64_t longer_ms = 5'000;
  const std::uint64_t ms = needs_.limits.ask_timeout_ms + (client.repeats_requests ? longer_ms : 0);
  return needs_.reactor.now_ns() + ms * 1'000'000u;
}

void Asks::put_as_input(std::uint64_t handle, const Message &message, Call *call) {
  std::string why = "the request cannot be attributed to a call";
  if (needs_.inputs != nullptr && call != nullptr) {
    why = needs_.inputs->ask(
        *call, handle,
        {message.scan->method, message[message.scan->params], needs_.limits.ask_timeout_ms});
  }
  const Ask *found = asks_.get(handle);
  if (why.empty() || found == nullptr) return;
  Lane &lane = *found->lane;
  remove(handle);
  ++needs_.counters.refused_asks;
  const std::string text =
      error_message(message.id(), code::internal_error, "the client cannot be asked: " + why);
  const bh_str part = bh::str(text);
  lane.send(BH_LANE_RESPONSE, &part, 1);
}

void Asks::refuse_malformed(Lane &lane, const Message &message) {
  refuse(lane, message.id(), message.scan->method, Refusal::malformed);
}

void Asks::ask_refused(Lane &lane, std::string_view id, mcp::Method method) {
  refuse(lane, id, method, Refusal::by_policy);
}

// Sends the server a refusal. `no_client` means that the ask cannot be attributed to a client, or
// that the client cannot be asked, is gone or has not answered in time.
void Asks::refuse(Lane &lane, std::string_view id, mcp::Method method, Refusal why) {
  ++needs_.counters.refused_asks;
  const std::string tail = refusal(method, why);
  const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"), bh::str(id), bh::str(tail)};
  lane.send(BH_LANE_RESPONSE, parts, 3);
}

// Returns the part of the response that follows the id.
std::string Asks::refusal(mcp::Method method, Refusal why) {
  if (why == Refusal::malformed) {
    return std::string(R"(,"error":{"code":-32602,"message":")") + bad_progress_token + "\"}}";
  }
  if (why == Refusal::unknown_task) {
    return R"(,"error":{"code":-32602,"message":"Task not found: no client has the related task"}})";
  }
  if (why != Refusal::undeclared && method == mcp::Method::elicitation_create) {
    return why == Refusal::by_policy ? R"(,"result":{"action":"decline"}})"
                                     : R"(,"result":{"action":"cancel"}})";
  }
  if (why == Refusal::by_policy) {
    return R"(,"error":{"code":-1,"message":"The request was blocked by policy"}})";
  }
  if (why == Refusal::no_client && method == mcp::Method::sampling_create_message) {
    return R"(,"error":{"code":-1,"message":"No client's answer is available"}})";
  }
  return R"(,"error":{"code":-32601,"message":"Method not found"}})";
}

void Asks::cancelled(Lane &lane, const Message &message) {
  const std::string_view id = message[message.scan->request_id];
  std::uint64_t found = 0;
  asks_.for_each([&](std::uint64_t handle, Ask &ask) {
    if (ask.lane == &lane && ask.upstream_id == id) found = handle;
  });
  const Ask *ask = asks_.get(found);
  if (ask == nullptr) return needs_.events.drop_ask(lane.handle(), id);
  const Ask cancelled = *ask;
  remove(found);
  tell_client(cancelled, compose_cancelled(Digits(found).view(), message.bytes, *message.scan));
}

// ---- from clients ----------------------------------------------------------------------------

void Asks::answered(Session &session, const Message &message) {
  const std::uint64_t handle = parse_number(message.id());
  Ask *found = asks_.get(handle);
  if (found == nullptr || found->session != session.handle || found->answered) {
    ++needs_.counters.stray_answers;
    return;
  }
  const bool of_server = found->lane != nullptr || found->input != 0;
  const bool judged =
      of_server && message.scan->kind == mcp::Kind::result && needs_.gate.judges_inputs();
  if (judged && !judge_answer(session, handle, *found, message)) return;
  pass_answer(handle, message);
}

bool Asks::judge_answer(const Session &session, std::uint64_t handle, Ask &ask,
                        const Message &message) {
  JudgedEvent event;
  event.kind = JudgedEvent::Kind::answer;
  event.method = ask.method;
  event.method_text = mcp::to_string(ask.method);
  const Call *call = ask.others.empty() ? needs_.calls.get(ask.call) : nullptr;
  if (ask.lane != nullptr) event.server = ask.lane->upstream().name();
  if (ask.input != 0 && call != nullptr) event.server = call->server;
  event.tool = call != nullptr && concerns_tool(*call) ? call->name : ask.tool;
  event.ask = handle;
  event.message = message.bytes;
  ask.answered = true;
  return needs_.events.judge(std::move(event), session, message[message.scan->result]);
}

void Asks::answer_judged(std::uint64_t ask, const Message &message) {
  pass_answer(ask, message);
}

void Asks::answer_refused(std::uint64_t handle) {
  const Ask *found = asks_.get(handle);
  if (found == nullptr) return;
  const Ask ask = *found;
  remove(handle);
  if (ask.input != 0) return refuse_input(ask.call, ask.input, ask.method, Refusal::by_policy);
  refuse(*ask.lane, ask.upstream_id, ask.method, Refusal::by_policy);
}

// Forwards the client's answer to the server that sent the request, with the id that the server
// chose for the request. Answers to approval forms and input requests are passed to Forms.
void Asks::pass_answer(std::uint64_t handle, const Message &message) {
  const Ask *found = asks_.get(handle);
  if (found == nullptr) return;
  const Ask ask = *found;  // copied, because sending may add asks and move this one
  remove(handle);
  if (ask.input != 0) return needs_.forms.input_answered(ask.call, ask.input, message);
  if (ask.lane == nullptr) return needs_.forms.form_answered(ask.call, message);
  Splice splice(message.bytes);
  splice.replace(message.scan->id, ask.upstream_id);
  const bh_str *parts = splice.parts();
  if (parts == nullptr) {
    needs_.on_lost(*ask.lane, ask.method);
    return refuse(*ask.lane, ask.upstream_id, ask.method, Refusal::no_client);
  }
  ask.lane->send(BH_LANE_RESPONSE, parts, splice.count());
}

Asks::Progress Asks::progress_of(const Session &session, const Message &message) const {
  const Ask *ask = asks_.get(parse_number(message[message.scan->token]));
  if (ask == nullptr || ask->session != session.handle || ask->upstream_token.empty()) return {};
  return {ask->lane, ask->upstream_token};
}

// ---- input requests --------------------------------------------------------------------------

void Asks::ask_input(Call &call, const Input &input) {
  const Session *client = call.session;
  if (client == nullptr || !takes_asks(*client) ||
      (client->caps & capability_for(input.method)) == 0 || has_too_many_asks(*client)) {
    return refuse_input(call.id, input.number, input.method, Refusal::no_client);
  }
  if (!needs_.gate.judges_inputs()) return put_input(call, input);
  JudgedEvent event;
  event.kind = JudgedEvent::Kind::ask;
  event.method = input.method;
  event.method_text = mcp::to_string(input.method);
  event.server = call.server;
  if (concerns_tool(call)) event.tool = call.name;
  event.call = call.id;
  event.hint = input.number;
  event.message = R"({"jsonrpc":"2.0","id":0,"method":")" + event.method_text + R"(","params":)" +
                  std::string(input.params) + "}";
  if (needs_.events.judge(std::move(event), *client, input.params)) put_input(call, input);
}

void Asks::input_judged(std::uint64_t id, std::uint32_t number, const Message &message) {
  Call *call = needs_.calls.get(id);
  if (call == nullptr || call->stage != Stage::asking) return;
  const mcp::Method method = message.scan->method;
  const Session *client = call->session;
  if (client == nullptr || !takes_asks(*client)) {
    return refuse_input(id, number, method, Refusal::no_client);
  }
  put_input(*call, {number, method, message[message.scan->params]});
}

void Asks::input_refused(std::uint64_t call, std::uint32_t number, mcp::Method method) {
  refuse_input(call, number, method, Refusal::by_policy);
}

void Asks::put_input(Call &call, const Input &input) {
  Session &client = *call.session;
  Ask ask;
  ask.session = client.handle;
  ask.call = call.id;
  ask.input = input.number;
  ask.method = input.method;
  ask.deadline_ns = deadline_of(client);
  const std::uint64_t handle = insert(std::move(ask), client);
  ++call.open_asks;
  std::string params(input.params);
  // In revisions with sessions, a URL elicitation must have an id, which a completion notification
  // would repeat. For an input request, such a notification is never sent.
  const bool url = input.method == mcp::Method::elicitation_create && !client.repeats_requests &&
                   mcp::member(params, "mode") == R"("url")" &&
                   mcp::member(params, "elicitationId").empty();
  if (url) params.replace(0, 1, R"({"elicitationId":")" + std::to_string(handle) + "\",");
  const std::uint64_t id = call.id;
  if (show(call, handle, {input.method, params, needs_.limits.ask_timeout_ms})) return;
  remove(handle);
  refuse_input(id, input.number, input.method, Refusal::no_client);
}

// Sends a request that is not from a lane to the client of the call. Returns false if the client
// cannot be asked.
bool Asks::show(Call &call, std::uint64_t handle, const AskText &text) {
  const Session &client = *call.session;
  if (client.repeats_requests) {
    return needs_.inputs != nullptr && needs_.inputs->ask(call, handle, text).empty();
  }
  const Digits id(handle);
  const std::string_view method = mcp::to_string(text.method);
  const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"),
                          bh::str(id.view()),
                          bh::str(R"(,"method":")"),
                          bh::str(method),
                          bh::str(R"(","params":)"),
                          bh::str(text.params),
                          bh::str("}")};
  needs_.answers.send({client.handle, call.request.reply.stream, 0}, BH_OUT_ASK, parts, 7);
  return true;
}

void Asks::refuse_input(std::uint64_t call, std::uint32_t number, mcp::Method method, Refusal why) {
  ++needs_.counters.refused_asks;
  constexpr std::string_view unanswered =
      R"(,"error":{"code":-1,"message":"the client cannot be asked, or did not answer in time"}})";
  const bool elicits = method == mcp::Method::elicitation_create;
  const std::string text =
      R"({"jsonrpc":"2.0","id":0)" +
      (why == Refusal::no_client && !elicits ? std::string(unanswered) : refusal(method, why));
  mcp::Scan scan;
  mcp::ScanError error;
  if (mcp::scan(text, &scan, &error)) needs_.forms.input_answered(call, number, {text, &scan});
}

// ---- approval forms --------------------------------------------------------------------------

std::uint64_t Asks::open_form(Session &session, std::uint64_t call, std::uint64_t timeout_ms) {
  // The form's deadline is later than that of the question, so the question always expires first.
  constexpr std::uint64_t longer_ms = 5'000;
  Ask ask;
  ask.session = session.handle;
  ask.method = mcp::Method::elicitation_create;
  ask.call = call;
  ask.deadline_ns = needs_.reactor.now_ns() + (timeout_ms + longer_ms) * 1'000'000u;
  const std::uint64_t handle = insert(std::move(ask), session);
  return handle;
}

void Asks::show_form(Call &call, std::uint64_t form, std::string_view params) {
  const Ask *ask = asks_.get(form);
  if (ask == nullptr || call.session == nullptr) return;
  const std::uint64_t now = needs_.reactor.now_ns();
  const std::uint64_t ms = ask->deadline_ns > now ? (ask->deadline_ns - now) / 1'000'000u : 0;
  const std::uint64_t id = call.id;
  if (show(call, form, {mcp::Method::elicitation_create, params, ms})) return;
  remove(form);
  needs_.forms.form_lost(id);
}

void Asks::close_form(std::uint64_t call) {
  end_where(
      [call](const Ask &ask) { return ask.lane == nullptr && ask.input == 0 && ask.call == call; },
      Tell::client);
}

// ---- deadlines of calls -----------------------------------------------------------------------

void Asks::suspend(std::uint64_t call) {
  Call *waits = needs_.calls.get(call);
  if (waits == nullptr || waits->open_asks++ != 0) return;
  needs_.deadlines.suspend(*waits);
  if (waits->stage == Stage::at_server) waits->stage = Stage::suspended;
}

// Called when an ask of the call has ended. If the call has no other asks, its full time-out starts
// again, because suspend() has removed the deadline without storing the remaining time.
void Asks::resume(std::uint64_t call) {
  Call *resumed = needs_.calls.get(call);
  if (resumed == nullptr || resumed->open_asks == 0 || --resumed->open_asks != 0) return;
  if (resumed->stage == Stage::awaiting_repeat) take_place_again(*resumed);
  if (resumed->stage == Stage::suspended || resumed->stage == Stage::awaiting_repeat) {
    resumed->stage = Stage::at_server;
  }
  needs_.deadlines.arm(*resumed, resumed->timeout_ms);
}

// ---- ends ------------------------------------------------------------------------------------

void Asks::remove(std::uint64_t handle) {
  Ask *found = asks_.get(handle);
  if (found == nullptr) return;
  const Ask ask = std::move(*found);
  asks_.erase(handle);
  --ask.load->asks;
  if (Session *s = needs_.sessions.find(ask.session)) std::erase(s->asks, handle);
  if (needs_.inputs != nullptr) needs_.inputs->withdrawn(ask.session, handle);
  if (ask.input != 0) {  // the call has the deadline of its stage
    Call *call = needs_.calls.get(ask.call);
    if (call != nullptr && call->open_asks != 0) --call->open_asks;
  }
  if (ask.lane == nullptr) return;  // the call of a form has the deadline of the question
  resume(ask.call);
  for (const std::uint64_t other : ask.others) resume(other);
}

void Asks::call_ended(std::uint64_t call, bool tell_server) {
  if (asks_.size() == 0) return;
  asks_.for_each([&](std::uint64_t, Ask &ask) {
    std::erase(ask.others, call);
    if (ask.call != call || ask.others.empty()) return;
    ask.call = ask.others.back();
    ask.others.pop_back();
  });
  end_where([call](const Ask &ask) { return ask.call == call; },
            tell_server ? Tell::both : Tell::client);
}

void Asks::session_ended(bh_session session) {
  const Session *s = needs_.sessions.find(session);
  if (s == nullptr) return;
  for (const std::uint64_t handle : std::vector<std::uint64_t>(s->asks)) {
    end_one(handle, Tell::server);
  }
}

void Asks::connection_lost(Lane &lane) {
  end_where([&lane](const Ask &ask) { return ask.lane == &lane; }, Tell::client);
}

void Asks::end_where(const std::function<bool(const Ask &)> &which, Tell tell) {
  if (asks_.size() == 0) return;
  std::vector<std::uint64_t> handles;
  asks_.for_each([&](std::uint64_t handle, Ask &ask) {
    if (which(ask)) handles.push_back(handle);
  });
  for (const std::uint64_t handle : handles) end_one(handle, tell);
}

// Ends an ask. Depending on `tell`, the server receives a refusal, the client receives a
// cancellation, or both. For an ask without a lane, Forms is notified in place of the server.
void Asks::end_one(std::uint64_t handle, Tell tell) {
  const Ask *found = asks_.get(handle);
  if (found == nullptr) return;
  // Remove the ask from the table first, because the notified client or server may call back and
  // change the table.
  const Ask ask = *found;
  remove(handle);
  const bool tell_server = tell != Tell::client;
  if (tell_server && ask.lane != nullptr) {
    refuse(*ask.lane, ask.upstream_id, ask.method, Refusal::no_client);
  }
  if (tell != Tell::server) {
    tell_client(ask,
                R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" +
                    std::to_string(handle) + R"(,"reason":"an answer is no longer needed"}})");
  }
  if (!tell_server || ask.lane != nullptr) return;
  if (ask.input != 0) return refuse_input(ask.call, ask.input, ask.method, Refusal::no_client);
  needs_.forms.form_lost(ask.call);
}

// Clients that are asked through results (Session::repeats_requests) receive no notifications about
// asks.
void Asks::tell_client(const Ask &ask, std::string_view cancelled) {
  const Session *s = needs_.sessions.find(ask.session);
  if (s == nullptr || !s->repeats_requests) needs_.answers.event(asked_of(ask), cancelled);
}

// Returns the destination for notifications to the client about an ask: the stream of a call that
// may have caused it.
ReplyTo Asks::asked_of(const Ask &ask) {
  const Call *call = needs_.calls.get(ask.call);
  return {ask.session, call != nullptr ? call->request.reply.stream : 0, 0};
}

// ---- time-outs -------------------------------------------------------------------------------

// Users answer asks, so checking once a second is precise enough.
void Asks::start_timer() {
  if (timer_ != 0) return;
  timer_ = needs_.reactor.timer_start(this, 1000, bh::callback(this, [](Asks &self) {
                                        self.timer_ = 0;
                                        self.expire();
                                        if (self.asks_.size() != 0) self.start_timer();
                                      }));
}

void Asks::expire() {
  const std::uint64_t now = needs_.reactor.now_ns();
  end_where([now](const Ask &ask) { return ask.deadline_ns <= now; }, Tell::both);
}

}  // namespace bulkhead
