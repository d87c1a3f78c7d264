#include "route/answer_bridge.hpp"

#include <utility>

#include "mcp/for_each.hpp"
#include "mcp/json_names.hpp"
#include "mcp/member_value.hpp"
#include "route/answer_form.hpp"
#include "route/input_round.hpp"
#include "route/json_rpc.hpp"
#include "route/protocol.hpp"
#include "route/result_form.hpp"
#include "route/session.hpp"
#include "route/task_forms.hpp"
#include "route/url_inputs.hpp"

namespace bulkhead {
namespace {

// Returns true if the server and the client belong to different protocol generations and the
// server's AnswerForm must convert the response.
bool is_bridged(const Call &call) {
  return call.answer_form != nullptr && call.request.reply.form == nullptr;
}

void add_members(const ResultForm &form, const Message &answer, Splice *splice) {
  const mcp::Range result = answer.scan->result;
  if (!answer[result].starts_with('{')) return;
  const std::string_view members = form.members(answer);
  splice->insert(result.begin + 1, members);
  if (!members.empty() && has_members(answer[result])) splice->insert(result.begin + 1, ",");
}

// Returns true if a client may read the error as one that requires it to visit URLs: the error has
// this code, several codes, or no code that can be read.
bool may_require_urls(std::string_view error) {
  std::size_t codes = 0;
  if (error.starts_with('{')) {
    mcp::for_each_member(error, [&codes](std::string_view key, std::string_view) {
      if (mcp::json::same_text(key.substr(1, key.size() - 2), "code")) ++codes;
    });
  }
  return codes != 1 || read_error_code(error).value_or(code::urls_required) == code::urls_required;
}

// How a client of 2026-07-28 may read a result. Clients unescape the names of members, but the
// scanner recognizes only names without escape sequences. If a name has escape sequences or occurs
// twice, the members are therefore read again here.
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

AnswerBridge::Reply::Reply(const Message &answer)
    : splice(answer.bytes),
      ok(answer.scan->kind == mcp::Kind::result),
      bytes(answer.size()),
      response(answer[ok ? answer.scan->result : answer.scan->error]) {}

bool AnswerBridge::fail(Call &call, std::string_view why) const {
  needs_.ends.fail(call, code::internal_error, "server \"" + call.server + "\" " + std::string(why),
                   BH_OUTCOME_ERROR);
  return false;
}

// ---- before the policy -----------------------------------------------------------------------

void AnswerBridge::arrived(Call &call, const Message &answer) const {
  if (needs_.tasks == nullptr || answer.scan->kind != mcp::Kind::result) return;
  needs_.tasks->arrived(call, answer[answer.scan->result]);
}

std::optional<Message> AnswerBridge::take(Call &call, const Message &answer, Composed *room) const {
  Message taken = answer;
  if (call.bridge != nullptr && needs_.task_rounds != nullptr) {
    const TaskRounds::Step step = needs_.task_rounds->take(call, answer, &room->text);
    if (step == TaskRounds::Step::waits) return std::nullopt;
    if (step == TaskRounds::Step::replaced) {
      mcp::ScanError error;
      if (!mcp::scan(room->text, &room->scan, &error)) {
        fail(call, "sent an invalid task");
        return std::nullopt;
      }
      taken = {room->text, &room->scan};
    }
  }
  // InputRounds handles the requests for input in a result one by one, like requests from servers
  // with sessions. If the client could handle the result itself, this is necessary only if the
  // policy evaluates such requests.
  const bool rounds = is_bridged(call) ||
                      (call.answer_form != nullptr && call.judges_inputs && call.input != nullptr);
  const bool interim =
      taken.scan->kind == mcp::Kind::result && rounds && call.answer_form->is_interim(taken);
  if (!interim) return taken;
  needs_.rounds.begin(call, taken);
  return std::nullopt;
}

// ---- after the policy ------------------------------------------------------------------------

std::optional<std::string> AnswerBridge::rewritten(const Call &call, std::string_view result,
                                                   const std::string &replacement) {
  if (!describes_task(call.task, call.method, result)) return replacement;
  return rewritten_task(result, replacement);
}

bool AnswerBridge::converts(const Call &call) {
  return call.answer_form != nullptr || call.request.reply.form != nullptr ||
         call.task != TaskRole::none || call.bridge != nullptr;
}

bool AnswerBridge::convert(Call &call, const Message &answer, Reply *reply) const {
  reply->splice.replace(answer.scan->id, call.request.id);
  return reply->ok ? convert_result(call, answer, reply) : convert_error(call, answer, reply);
}

bool AnswerBridge::convert_result(Call &call, const Message &answer, Reply *reply) const {
  if (!edit_tasks(call, answer, reply)) return false;
  if (is_bridged(call)) call.answer_form->edit(answer, &reply->splice, &reply->meta_);
  const ResultForm *form = call.request.reply.form;
  if (form == nullptr) return true;
  if (!forward_input(call, answer, reply)) return false;
  add_members(*form, answer, &reply->splice);
  return true;
}

// Replaces the server's task ids. Returns false if the call has been ended instead.
bool AnswerBridge::edit_tasks(Call &call, const Message &answer, Reply *reply) const {
  if (call.task == TaskRole::none || needs_.tasks == nullptr) return true;
  auto edits = needs_.tasks->edits(call, answer[answer.scan->result]);
  if (!edits) return fail(call, edits.error());
  reply->tasks_ = *std::move(edits);
  reply->tasks_.apply(&reply->splice, answer.bytes);
  return true;
}

bool AnswerBridge::convert_error(Call &call, const Message &answer, Reply *reply) const {
  const std::string_view error = answer[answer.scan->error], token = mcp::member(error, "code");
  if (needs_.gate.judges_inputs() && may_require_urls(error)) {
    return fail(call,
                "requires the client to visit URLs, which rules about inputs cannot evaluate");
  }
  if (ask_for_urls(call, error, reply)) return true;
  const ResultForm *form = call.request.reply.form;
  const std::int32_t sent = read_error_code(error).value_or(code::internal_error);
  std::int32_t formed = sent;
  std::optional<ReplacedError> instead;
  if (call.answer_form != nullptr) {
    const ClientCaps caps = call.session == nullptr ? 0 : call.session->caps;
    instead = call.answer_form->replace(call.method, error, {caps, !is_bridged(call)});
  }
  if (instead.has_value() && !instead->text.empty()) {
    const std::string text = "server \"" + call.server + "\": " + instead->text;
    instead->error_code != 0 ? needs_.ends.fail(call, instead->error_code, text, BH_OUTCOME_ERROR)
                             : needs_.ends.fail_as_result(call, text);
    return false;
  }
  if (instead.has_value()) {
    formed = instead->error_code;
  } else if (form != nullptr) {
    const ResultForm::ErrorForm own = form->error(sent);
    formed = own.code;
    reply->http_status = own.http_status;
  }
  if (formed == sent || token.empty()) return true;
  const auto begin = static_cast<std::uint32_t>(token.data() - answer.bytes.data());
  reply->code_ = std::to_string(formed);
  reply->splice.replace({begin, begin + static_cast<std::uint32_t>(token.size())}, reply->code_);
  return true;
}

std::optional<std::string> AnswerBridge::sealed(const Call &call, std::string_view state) const {
  return needs_.states->seal(RequestState{call.server, std::string(state)}, call,
                             needs_.reactor.now_ns() + needs_.state_ms * 1'000'000u);
}

// A server with sessions may respond with an error that requires the client to visit URLs. If the
// client uses revision 2026-07-28 and supports such requests, this function asks it to visit the
// URLs through a result, and returns true. The client then repeats its request as a new call.
bool AnswerBridge::ask_for_urls(Call &call, std::string_view error, Reply *reply) const {
  const Session *s = call.session;
  const bool can = s != nullptr && s->repeats_requests && (s->caps & cap::elicitation_url) != 0;
  const ResultForm *form = call.request.reply.form;
  if (!can || call.answer_form != nullptr || form == nullptr) return false;
  if (needs_.states == nullptr || needs_.gate.judges_inputs()) return false;
  const auto inputs = url_inputs(error);
  const auto state = inputs ? sealed(call, {}) : std::nullopt;
  if (!state) return false;
  const std::string head = R"({"jsonrpc":"2.0","id":)" + call.request.id + R"(,"result":)";
  reply->whole_ = head + formed_result(*form, R"({"resultType":"input_required","inputRequests":)" +
                                                  *inputs + R"(,"requestState":)" + *state + "}");
  reply->whole_ += '}';
  reply->response = {reply->whole_.data() + head.size(), reply->whole_.size() - head.size() - 1};
  reply->splice = Splice(reply->whole_);
  reply->ok = true;
  reply->bytes = reply->whole_.size();
  return true;
}

// Called for each result to a client of 2026-07-28. If the result, or a task in it, asks the client
// for input, checks the requests and replaces the server's requestState with one that the gateway
// has sealed. Returns false if the call has been ended with an error instead, for example because
// the result is a task that was not requested, or because a request for input needs a capability
// that the client has not declared to the gateway or the gateway has not declared to the server.
bool AnswerBridge::forward_input(Call &call, const Message &answer, Reply *reply) const {
  const std::string_view result = answer[answer.scan->result];
  const ClientReading read = ClientReading::of(answer);
  if (read.is_task && !describes_task(call.task, call.method, result)) {
    return fail(call, "sent a task that was not requested");
  }
  const bool about_task = is_task_method(call.method);
  if (call.session == nullptr || (!call.session->repeats_requests && !about_task)) return true;
  // take() has passed requests for input to the policy one by one, except those of a task and those
  // that the scanner did not recognize. The policy cannot evaluate the exceptions. A task that was
  // converted has no requests.
  if (needs_.gate.judges_inputs() && read.asks && call.bridge == nullptr) {
    return fail(call, "asks for input in a form that rules about inputs cannot evaluate");
  }
  const bool of_task = (about_task || read.is_task) && read.requests != 0;
  if (!read.is_input && !of_task) return true;
  if (read.states > 1) return fail(call, "asks for input with a duplicate requestState");
  if (read.requests > 1) return fail(call, "asks for input with duplicate inputRequests");
  const ClientCaps caps = call.session->caps & call.declared;
  if (const auto round = InputRound::read(result, caps); !round) {
    return fail(call, round.error().text);
  }
  if (!read.is_input || needs_.states == nullptr) return true;
  // A tools plugin does not verify that it has asked the client, so its result always gets a state.
  const std::string_view token = read.state;
  const bool is_plugin = lane_of(call) != nullptr && lane_of(call)->server_caps().asks_input;
  const bool adds = token.empty() && is_plugin;
  if (!adds && !token.starts_with('"')) return true;
  auto state = sealed(call, adds ? R"("")" : token);
  if (!state) {
    return fail(call,
                "asks for input with a requestState that is too long, or in a call that is too "
                "large to be kept");
  }
  if (adds) {
    reply->state_ = R"("requestState":)" + *state + ",";
    reply->splice.insert(static_cast<std::uint32_t>(result.data() - answer.bytes.data()) + 1,
                         reply->state_);
    return true;
  }
  reply->state_ = *std::move(state);
  const auto begin = static_cast<std::uint32_t>(token.data() - answer.bytes.data());
  reply->splice.replace({begin, begin + static_cast<std::uint32_t>(token.size())}, reply->state_);
  return true;
}

}  // namespace bulkhead
