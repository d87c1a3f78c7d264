#include "route/call_answers.hpp"

#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/for_each.hpp"
#include "mcp/json_names.hpp"
#include "mcp/member_value.hpp"
#include "route/answer_form.hpp"
#include "route/input_round.hpp"
#include "route/json_rpc.hpp"
#include "route/lane.hpp"
#include "route/result_form.hpp"
#include "route/session.hpp"
#include "route/splice.hpp"
#include "route/url_inputs.hpp"

namespace bulkhead {
namespace {

// Returns the server's error code, so that clients can still act on it, or internal_error if the
// code is not an integer.
std::int32_t error_code_of(std::string_view error) {
  return read_error_code(error).value_or(code::internal_error);
}

// If the client's protocol generation uses a different code for this error, replaces the code in
// the server's error. *text stores the new code. Returns the HTTP status.
std::uint32_t form_error(const ResultForm &form, const Message &answer, Splice *splice,
                         std::string *text) {
  const std::string_view error = answer[answer.scan->error];
  const std::string_view token = mcp::member(error, "code");
  const std::int32_t code = error_code_of(error);
  const ResultForm::ErrorForm formed = form.error(code);
  if (formed.code != code && !token.empty()) {
    const auto begin = static_cast<std::uint32_t>(token.data() - answer.bytes.data());
    *text = std::to_string(formed.code);
    splice->replace({begin, begin + static_cast<std::uint32_t>(token.size())}, *text);
  }
  return formed.http_status;
}

void add_members(const ResultForm &form, const Message &answer, Splice *splice) {
  const mcp::Range result = answer.scan->result;
  if (!answer[result].starts_with('{')) return;
  const std::string_view members = form.members(answer);
  splice->insert(result.begin + 1, members);
  if (!members.empty() && has_members(answer[result])) splice->insert(result.begin + 1, ",");
}

// Returns true if the server and the client belong to different protocol generations and the
// server's AnswerForm must convert the response.
bool is_bridged(const Call &call) {
  return call.answer_form != nullptr && call.request.reply.form == nullptr;
}

}  // namespace

// The response to send, and the data for its record.
struct CallAnswers::Passed {
  Splice &splice;
  std::uint32_t outcome;
  std::uint64_t bytes;
  std::string_view rule, error, response;
  std::uint32_t http_status = 0;
};

void CallAnswers::answered(Call &call, const Message &answer, std::string *owned) {
  if (needs_.tasks != nullptr && answer.scan->kind == mcp::Kind::result) {
    needs_.tasks->arrived(call, answer[answer.scan->result]);
  }
  if (needs_.loop.running()) {
    needs_.loop.post_answer(call, answer, owned);
    return needs_.ends.leave_lane(call);
  }
  const CallLoop::Run run(needs_.loop);
  take(call, answer);
}

void CallAnswers::handle(Call &call, CallEvent event) {
  const EventDetails &details = call.events.details();
  if (event == CallEvent::failed) return fail(call, details.failure);
  take(call, {details.answer, &details.answer_scan});
}

void CallAnswers::take(Call &call, const Message &answer) {
  // Cancel the requests to which the server no longer needs answers. This must happen while the
  // stream is still open.
  if (call.open_asks != 0) {
    needs_.asks.call_ended(call.id, false);
    call.open_asks = 0;
  }
  if (call.bridge == nullptr || needs_.task_rounds == nullptr) return take_final(call, answer);
  std::string room;
  mcp::Scan scan;
  mcp::ScanError error;
  switch (needs_.task_rounds->take(call, answer, &room)) {
    case TaskRounds::Step::waits:
      return;
    case TaskRounds::Step::unchanged:
      return take_final(call, answer);
    case TaskRounds::Step::replaced:
      if (mcp::scan(room, &scan, &error)) return take_final(call, {room, &scan});
      return needs_.ends.fail(call, code::internal_error,
                              "server \"" + call.server + "\" sent an invalid task",
                              BH_OUTCOME_ERROR);
  }
}

void CallAnswers::take_final(Call &call, const Message &answer) {
  // If the result asks for input, the policy evaluates the requests in it one by one, like requests
  // from servers with sessions.
  const bool interim = answer.scan->kind == mcp::Kind::result && is_bridged(call) &&
                       call.answer_form->is_interim(answer);
  if (interim) return needs_.rounds.begin(call, answer);
  if (needs_.gate.observes() && !passes_policy(call, answer)) return;
  pass(call, answer);
}

void CallAnswers::pass(Call &call, const Message &answer) {
  const mcp::Scan &scan = *answer.scan;
  const bool ok = scan.kind == mcp::Kind::result;
  if (scan.id.empty()) {
    return needs_.ends.fail(call, code::internal_error,
                            "server \"" + call.server +
                                "\" sent an error response without an id: " +
                                std::string(answer[scan.error].substr(0, 300)),
                            BH_OUTCOME_ERROR);
  }
  if (!ok && (asked_for_urls(call, answer) || replaced_error(call, answer))) return;
  const auto tasks = task_edits(call, ok ? answer[scan.result] : std::string_view{});
  if (!tasks) return;
  Splice splice(answer.bytes);
  splice.replace(scan.id, call.request.id);
  tasks->apply(&splice, answer.bytes);
  std::string meta;
  if (ok && is_bridged(call)) call.answer_form->edit(answer, &splice, &meta);
  const ResultForm *form = call.request.reply.form;
  std::string code;
  std::uint32_t http_status = 0;
  std::string state;
  if (form != nullptr && ok && !forwards_input(call, answer, &splice, &state)) return;
  if (form != nullptr && ok) add_members(*form, answer, &splice);
  if (form != nullptr && !ok) http_status = form_error(*form, answer, &splice, &code);
  // Only the message of the error is recorded as the error text. Its other members are recorded as
  // part of the response.
  std::string scratch;
  const std::string_view error =
      ok || !needs_.recorder.active()
          ? std::string_view{}
          : mcp::unquote(mcp::member(answer[scan.error], "message"), &scratch);
  send(call, {splice,
              std::uint32_t{ok ? BH_OUTCOME_OK : BH_OUTCOME_ERROR},
              answer.size(),
              {},
              error,
              answer[ok ? scan.result : scan.error],
              http_status});
}

// Returns the edits that replace the server's task ids in a result. Returns nothing if the call has
// been ended with an error instead.
std::optional<TaskAnswers::Edits> CallAnswers::task_edits(Call &call, std::string_view result) {
  if (call.task == TaskRole::none || needs_.tasks == nullptr) return TaskAnswers::Edits{};
  auto edits = needs_.tasks->edits(call, result);
  if (edits) return *std::move(edits);
  needs_.ends.fail(call, code::internal_error, "server \"" + call.server + "\" " + edits.error(),
                   BH_OUTCOME_ERROR);
  return std::nullopt;
}

// A server with sessions may respond with an error that requires the client to visit URLs. If the
// client uses revision 2026-07-28, this function asks it to visit them through a result, and
// returns true. The call is sent again when the client repeats its request.
bool CallAnswers::asked_for_urls(Call &call, const Message &answer) {
  const Session *s = call.session;
  const bool can = s != nullptr && s->repeats_requests && (s->caps & cap::elicitation_url) != 0;
  if (!can || call.answer_form != nullptr || call.request.reply.form == nullptr) return false;
  if (needs_.states == nullptr || needs_.gate.judges_inputs()) return false;
  const auto inputs = url_inputs(answer[answer.scan->error]);
  if (!inputs) return false;
  const auto state = needs_.states->seal(RequestState{call.server, {}}, call,
                                         needs_.reactor.now_ns() + needs_.state_ms * 1'000'000u);
  if (!state) return false;
  const std::string result =
      formed_result(*call.request.reply.form, R"({"resultType":"input_required","inputRequests":)" +
                                                  *inputs + R"(,"requestState":)" + *state + "}");
  const std::string whole =
      R"({"jsonrpc":"2.0","id":)" + call.request.id + R"(,"result":)" + result + "}";
  Splice splice(whole);
  send(call, {splice, BH_OUTCOME_OK, whole.size(), {}, {}, result});
  return true;
}

namespace {

// What a client of 2026-07-28 may read in a result. Names and the type are unescaped before they
// are compared, whereas the scanner recognizes only names without escape sequences. The members are
// therefore read again only if a name has escape sequences or occurs twice.
struct ClientReading {
  bool typed = false;          // has a type
  bool is_task = false;        // its type may be "task"
  bool is_input = false;       // its type may be "input_required"
  bool asks = false;           // may be a request for input
  std::uint32_t requests = 0;  // number of members `inputRequests`
  std::uint32_t states = 0;    // number of members `requestState`
  std::string_view state{};    // value of the last one

  static ClientReading of(const Message &answer) {
    const mcp::Scan &scan = *answer.scan;
    if (scan.result_escapes || scan.result_twice) return of_members(answer[scan.result]);
    ClientReading out;
    out.asks = !scan.input_requests.empty();
    out.requests = out.asks ? 1 : 0;
    if (!scan.result_type.empty()) out.add_type(mcp::member_value(answer[scan.result_type]));
    out.states = scan.request_state.empty() ? 0 : 1;
    out.state = mcp::member_value(answer[scan.request_state]);
    return out;
  }

 private:
  static ClientReading of_members(std::string_view result) {
    ClientReading out;
    mcp::for_each_member(result, [&out](std::string_view key, std::string_view value) {
      const std::string_view name = key.substr(1, key.size() - 2);
      if (mcp::json::same_text(name, "inputRequests")) ++out.requests;
      out.asks = out.asks || out.requests != 0;
      if (mcp::json::same_text(name, "resultType")) out.add_type(value);
      if (!mcp::json::same_text(name, "requestState")) return;
      ++out.states;
      out.state = value;
    });
    return out;
  }

  void add_type(std::string_view value) {
    std::string scratch;
    const std::string_view type =
        value.starts_with('"') ? mcp::unquote(value, &scratch) : std::string_view{};
    is_task = is_task || type == "task";
    is_input = is_input || type == "input_required";
    asks = asks || typed || (type != "complete" && type != "task");
    typed = true;
  }
};

}  // namespace

// Called for each result to a client of 2026-07-28. If the result asks the client for input, checks
// the requests, as for a task that requires input, and replaces the server's requestState with one
// that the gateway has sealed. *room stores the replacement. Returns false if the call has been
// ended with an error instead, for example because the client cannot receive a task, or has not
// declared that it answers such requests, or the gateway has not declared it to the server.
bool CallAnswers::forwards_input(Call &call, const Message &answer, Splice *splice,
                                 std::string *room) {
  const std::string_view result = answer[answer.scan->result];
  const ClientReading read = ClientReading::of(answer);
  if (read.is_task && !describes_task(call.task, call.method, result)) {
    needs_.ends.fail(call, code::internal_error,
                     "server \"" + call.server + "\" sent a task that was not requested",
                     BH_OUTCOME_ERROR);
    return false;
  }
  const bool about_task = is_task_method(call.method);
  if (call.session == nullptr || (!call.session->repeats_requests && !about_task)) return true;
  const auto fail = [&](std::string_view why) {
    needs_.ends.fail(call, code::internal_error,
                     "server \"" + call.server + "\" asks for input" + std::string(why),
                     BH_OUTCOME_ERROR);
    return false;
  };
  // The policy can evaluate only single requests, but this result may contain several.
  if (needs_.gate.judges_inputs() && read.asks)
    return fail(", which the rules about inputs cannot evaluate yet");
  const bool of_task = (about_task || read.is_task) && read.requests != 0;
  if (!read.is_input && !of_task) return true;
  if (read.states > 1) return fail(" with a duplicate requestState");
  if (read.requests > 1) return fail(" with duplicate inputRequests");
  const ClientCaps caps = call.session->caps & call.declared;
  if (const auto round = InputRound::read(result, caps); !round) {
    needs_.ends.fail(call, code::internal_error,
                     "server \"" + call.server + "\" " + round.error().text, BH_OUTCOME_ERROR);
    return false;
  }
  const std::string_view token = read.state;
  if (!read.is_input || !token.starts_with('"') || needs_.states == nullptr) return true;
  const auto sealed = needs_.states->seal(RequestState{call.server, std::string(token)}, call,
                                          needs_.reactor.now_ns() + needs_.state_ms * 1'000'000u);
  if (!sealed)
    return fail(" with a requestState that is too long, or in a call that is too large to be kept");
  *room = *sealed;
  const auto begin = static_cast<std::uint32_t>(token.data() - answer.bytes.data());
  splice->replace({begin, begin + static_cast<std::uint32_t>(token.size())}, *room);
  return true;
}

// Returns true if the client has been sent a replacement for this error.
bool CallAnswers::replaced_error(Call &call, const Message &answer) {
  if (call.answer_form == nullptr) return false;
  const std::string_view error = answer[answer.scan->error];
  const ClientCaps caps = call.session == nullptr ? 0 : call.session->caps;
  const auto instead = call.answer_form->replace(call.method, error, {caps, !is_bridged(call)});
  if (!instead.has_value()) return false;
  if (instead->text.empty()) {
    const std::string_view token = mcp::member(error, "code");
    const auto begin = static_cast<std::uint32_t>(token.data() - answer.bytes.data());
    Splice splice(answer.bytes);
    splice.replace(answer.scan->id, call.request.id);
    const std::string number = std::to_string(instead->error_code);
    splice.replace({begin, begin + static_cast<std::uint32_t>(token.size())}, number);
    send(call, {splice, BH_OUTCOME_ERROR, answer.size(), {}, {}, error});
  } else if (instead->error_code != 0) {
    needs_.ends.fail(call, instead->error_code, "server \"" + call.server + "\": " + instead->text,
                     BH_OUTCOME_ERROR);
  } else {
    send_result(call, instead->text);
  }
  return true;
}

void CallAnswers::send_result(Call &call, std::string_view result) {
  const std::string whole =
      R"({"jsonrpc":"2.0","id":)" + call.request.id + R"(,"result":)" + std::string(result) + "}";
  Splice splice(whole);
  send(call, {splice, BH_OUTCOME_OK, whole.size(), {}, {}, result});
}

void CallAnswers::fail_as_result(Call &call, std::string_view text) {
  if (call.method != mcp::Method::tools_call) {
    return needs_.ends.fail(call, code::internal_error, text, BH_OUTCOME_ERROR);
  }
  std::string result = R"({"content":[{"type":"text","text":)";
  bh::json::append_quoted(&result, text);
  send_result(call, result + R"(}],"isError":true})");
}

// Sends the answer before ending the call, because the splice borrows the client's id from the
// call.
void CallAnswers::send(Call &call, const Passed &passed) {
  const bh_str *parts = passed.splice.parts();
  if (parts == nullptr) {
    return needs_.ends.fail(call, code::internal_error, Splice::failure, BH_OUTCOME_ERROR);
  }
  call.created = {};
  if (needs_.recorder.goes_first()) {
    needs_.ends.record(call, {passed.outcome, needs_.reactor.now_ns(), passed.bytes, passed.rule,
                              passed.error, passed.response});
  }
  needs_.answers.answer(call.request.reply, parts, passed.splice.count(), passed.http_status);
  needs_.ends.finish(call, passed.outcome, passed.bytes, passed.rule, passed.error,
                     passed.response);
  needs_.on_ended();
}

void CallAnswers::fail_by_server(Call &call, std::int32_t error_code, std::string_view reason,
                                 std::uint32_t outcome) {
  CallFailure failure{error_code, outcome, std::string(reason), call.exchange != nullptr};
  if (needs_.loop.running()) {
    needs_.loop.post_failure(call, CallEvent::failed, std::move(failure));
    return needs_.ends.leave_lane(call);
  }
  const CallLoop::Run run(needs_.loop);
  fail(call, failure);
}

void CallAnswers::fail(Call &call, const CallFailure &failure) {
  const auto &[error_code, outcome, reason, of_server] = failure;
  if (!needs_.gate.observes() || !of_server) {
    return needs_.ends.fail(call, error_code, reason, outcome);
  }
  const std::string message = error_message(Digits(call.id).view(), error_code, reason);
  mcp::Scan scan;
  mcp::ScanError error;
  if (!mcp::scan(message, &scan, &error)) {
    return needs_.ends.fail(call, error_code,
                            "server \"" + call.server + "\" sent a malformed error", outcome);
  }
  if (passes_policy(call, {message, &scan})) needs_.ends.fail(call, error_code, reason, outcome);
}

// ---- the policy ------------------------------------------------------------------------------

// Returns true if the policy allows the response. Returns false if the call has been answered or
// the decision is pending.
bool CallAnswers::passes_policy(Call &call, const Message &answer) {
  const std::string_view body = Judge::judged_part_of_answer(answer);
  if (body.size() > DuplicateChecks::at_once) {
    check_later(call, answer);
    return false;
  }
  if (mcp::has_duplicate_members(body)) {
    filter(call, answer, Judge::duplicates_in("the result contains"));
    return false;
  }
  const std::uint64_t id = call.id;
  const Gate::Decision decision = needs_.judge.observe(call, answer);
  if (decision.verdict == Gate::Verdict::allow) return true;
  if (decision.verdict != Gate::Verdict::pending) {
    filter(call, answer, decision);
  } else if (!park(call, answer, Stage::answer_deciding)) {
    needs_.on_unanswered(id, false);
  }
  return false;
}

void CallAnswers::check_later(Call &call, const Message &answer) {
  if (!park(call, answer, Stage::answer_checking)) return;
  const ParkedMessage &message = call.parked->message;
  const std::string_view body = Judge::judged_part_of_answer(message.get());
  if (needs_.checks.begin(call.id, message.bytes(), body)) return;
  needs_.parking.take(call);
  refuse(call, Gate::failed("the pool for blocking work is full; try again later"));
}

// Parks the call together with the server's response. If too much data is waiting, refuses the call
// and returns false.
bool CallAnswers::park(Call &call, const Message &answer, Stage stage) {
  if (!needs_.parking.park_answer(call, answer, stage)) {
    refuse(call, Gate::waits_full());
    return false;
  }
  // The server has finished the call. Its slot is free for other calls, and the call is no longer
  // affected if the server exits.
  needs_.ends.leave_lane(call);
  return true;
}

void CallAnswers::checked(Call &call, bool duplicates) {
  Gate::Decision decision = Judge::duplicates_in("the result contains");
  if (!duplicates) {
    decision = needs_.judge.observe(call, call.parked->message.get());
    call.stage = Stage::answer_deciding;
    if (decision.verdict == Gate::Verdict::pending) return;
  }
  decided(call, decision);
}

void CallAnswers::decided(Call &call, const Gate::Decision &decision) {
  const CallInHand hand = needs_.parking.take(call);
  if (decision.verdict == Gate::Verdict::allow) return pass(call, hand.message);
  filter(call, hand.message, decision);
}

namespace {

// Returns the result in an edited message that begins with the member `result`.
std::string result_in(Splice &message) {
  std::string text;
  const bh_str *parts = message.parts();
  for (std::uint32_t i = 0; parts != nullptr && i < message.count(); ++i) {
    text.append(bh::view(parts[i]));
  }
  return std::string(mcp::member(text, "result"));
}

}  // namespace

// Replaces or withholds an answer; the original is never sent.
void CallAnswers::filter(Call &call, const Message &answer, const Gate::Decision &decision) {
  const mcp::Scan &scan = *answer.scan;
  if (scan.kind == mcp::Kind::error) {
    // An error is not rewritten but withheld completely.
    const Gate::Decision refusal =
        decision.verdict == Gate::Verdict::rewrite
            ? Gate::refusal(decision.rule, "a server error cannot be rewritten")
            : decision;
    needs_.judge.note(call, refusal);
    return refuse(call, refusal, error_code_of(answer[scan.error]));
  }
  needs_.judge.note(call, decision);
  if (decision.verdict != Gate::Verdict::rewrite) return refuse(call, decision);
  std::string result = decision.replacement;
  if (describes_task(call.task, call.method, answer[scan.result])) {
    auto task = rewritten_task(answer[scan.result], result);
    if (!task) {
      return refuse(call, Gate::refusal(decision.rule, "the error of a task cannot be rewritten"));
    }
    result = *std::move(task);
  }
  const auto tasks = task_edits(call, result);
  if (!tasks) return;
  if (tasks->places.count != 0) result = tasks->applied(result);
  Splice splice(answer.bytes);
  std::string formed;
  if (const ResultForm *form = call.request.reply.form) {
    const std::string whole = R"({"result":)" + result + R"(,"jsonrpc":"2.0","id":0})";
    mcp::Scan rescan;
    mcp::ScanError error;
    if (!mcp::scan(whole, &rescan, &error)) {
      return refuse(call, Gate::failed("the rewritten result is not valid"));
    }
    Splice inputs(whole);
    std::string state;
    if (!forwards_input(call, {whole, &rescan}, &inputs, &state)) return;
    if (!state.empty()) result = result_in(inputs);
    formed = formed_result(*form, result);
  } else if (is_bridged(call)) {
    formed = call.answer_form->edited(result);
  }
  splice.replace(scan.id, call.request.id);
  splice.replace(scan.result, formed.empty() ? result : formed);
  if (!splice.ok()) return refuse(call, Gate::failed(Splice::failure));
  send(call, {splice, BH_OUTCOME_OK, result.size(), decision.rule, {}, result});
}

void CallAnswers::refuse(Call &call, const Gate::Decision &decision, std::int32_t error_code) {
  ++needs_.counters.refused_by_policy;
  std::string text = "MCP response blocked by policy";
  if (!decision.rule.empty()) text += " (" + decision.rule + ")";
  const std::string why =
      decision.asks ? "needs approval, which is not supported for results" : decision.reason;
  if (!why.empty()) text += ": " + why;
  needs_.ends.finish(call, BH_OUTCOME_REFUSED, 0, decision.rule, why);
  needs_.answers.error(call.request.reply, call.request.id, error_code, text);
}

}  // namespace bulkhead
