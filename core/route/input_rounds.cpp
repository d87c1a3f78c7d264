#include "route/input_rounds.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/cpp/text.hpp"
#include "route/session.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view too_many_bytes =
    "the calls that wait for input from clients are too large in total";

std::string server_of(const Call &call) {
  return "server \"" + call.server + "\" ";
}

// Returns the error message for a call that ends because the client refused a request. It quotes
// the message of the client's error response.
std::string refusal_text(mcp::Method method, const Message &answer) {
  constexpr std::size_t most = 200;
  std::string scratch;
  const std::string_view message = mcp::member(answer[answer.scan->error], "message");
  std::string text = std::string(mcp::to_string(method)) + " was refused";
  if (message.starts_with('"')) {
    text.append(": ").append(bh::cut_text(mcp::unquote(message, &scratch), most));
  }
  return text;
}

bool has_session(const Call &call) {
  return call.session == nullptr || !call.session->is_sessionless();
}

}  // namespace

void InputRounds::begin(Call &call, const Message &answer) {
  needs_.ends.leave_lane(call);
  const auto fail = [&](std::int32_t error_code, std::string_view text) {
    needs_.ends.fail(call, error_code, text, BH_OUTCOME_ERROR);
  };
  if (call.input == nullptr) {
    return fail(code::internal_error,
                server_of(call) + "asks for input, which is not allowed for this request");
  }
  CallInput &input = *call.input;
  if (++input.rounds > max_rounds) {
    return fail(code::internal_error, server_of(call) + "asks for input more than " +
                                          std::to_string(max_rounds) + " times");
  }
  // A task lists the same requests until the server has handled the client's input.
  const bool about_task = call.bridge != nullptr && call.task == TaskRole::about;
  auto round = InputRound::read(answer[answer.scan->result], input.declared,
                                about_task ? call.bridge->answered : std::set<std::string>{});
  if (!round) {
    const std::string text = server_of(call) + round.error().text;
    if (round.error().code == BH_E_DENIED) return needs_.ends.fail_as_result(call, text);
    return fail(code::internal_error, text);
  }
  input.round = *std::move(round);
  if (about_task) {
    for (const auto &asked : input.round.requests()) call.bridge->answered.insert(asked.key);
  }
  input.members.clear();
  const CallInHand hand = input.request.in_hand();
  if (is_full(call, hand.message.size() + input.round.bytes())) {
    return fail(code::timeout, std::string(too_many_bytes) + "; try again");
  }
  if (!needs_.parking.park(call, hand, Stage::asking)) return;
  if (!input.round.requests().empty()) return ask(call);
  needs_.deadlines.arm(call,
                       std::min(first_pause_ms << std::min(input.rounds - 1, 16u), max_pause_ms));
}

void InputRounds::pause(Call &call, std::uint64_t ms) {
  needs_.ends.leave_lane(call);
  call.input->round = {};
  call.input->members.clear();
  if (is_full(call, call.input->request.message.size())) {
    return needs_.ends.fail(call, code::timeout, std::string(too_many_bytes) + "; try again",
                            BH_OUTCOME_ERROR);
  }
  if (!needs_.parking.park(call, call.input->request.in_hand(), Stage::asking)) return;
  ms == 0 ? needs_.loop.post(call, CallEvent::input) : needs_.deadlines.arm(call, ms);
}

// Sends the requests of the round to the client, except roots/list if the profile declares the
// server's roots. Answers may arrive before this function returns.
void InputRounds::ask(Call &call) {
  CallInput &input = *call.input;
  const auto &requests = input.round.requests();
  for (std::size_t i = 0; i < requests.size() && input.failure.empty(); ++i) {
    const std::vector<std::string> *roots =
        requests[i].method == mcp::Method::roots_list ? needs_.static_roots(call.server) : nullptr;
    if (roots != nullptr) {
      input.round.answer(i, compose_roots(*roots));
    } else {
      needs_.asks.ask_input(
          call, {static_cast<std::uint32_t>(i + 1), requests[i].method, requests[i].params});
    }
  }
  if (input.settled()) needs_.loop.post(call, CallEvent::input);
}

void InputRounds::answered(std::uint64_t id, std::uint32_t number, const Message &answer) {
  Call *call = needs_.calls.get(id);
  if (call == nullptr || call->stage != Stage::asking || call->input->settled()) return;
  if (call->session != nullptr && call->session->closing) return;  // the call is about to end
  if (is_full(*call, answer.size())) {
    call->input->failure = too_many_bytes;
  } else {
    store(call->input.get(), number - 1, answer);
  }
  if (!call->input->settled()) return;
  if (needs_.loop.running()) return needs_.loop.post(*call, CallEvent::input);
  const CallLoop::Run run(needs_.loop);
  proceed(*call);
}

void InputRounds::store(CallInput *input, std::size_t index, const Message &answer) {
  if (index >= input->round.requests().size()) return;
  const mcp::Method method = input->round.requests()[index].method;
  const bool ok = answer.scan->kind == mcp::Kind::result;
  if (!ok && method != mcp::Method::elicitation_create) {
    input->failure = refusal_text(method, answer);
    return;
  }
  // An error response means that the client cannot display the elicitation. The server then
  // receives the answer "cancel".
  const std::string_view result = ok ? answer[answer.scan->result] : R"({"action":"cancel"})";
  if (input->round.answer(index, result)) return;
  input->failure = "the client's answer to " + std::string(mcp::to_string(method)) +
                   " is not an object, or the answers exceed " +
                   std::to_string(InputRound::max_bytes) + " bytes";
}

void InputRounds::proceed(Call &call) {
  if (call.stage != Stage::asking || !call.input->settled()) return;
  CallInput &input = *call.input;
  if (!input.failure.empty()) {
    withdraw(call);
    return needs_.ends.fail_as_result(call, std::exchange(input.failure, {}));
  }
  input.members = input.round.members();
  input.round = {};
  needs_.repeat(call);
}

// Cancels the requests that the client has not answered. Called before the call ends, while its
// stream is still open.
void InputRounds::withdraw(Call &call) {
  if (call.open_asks != 0) needs_.asks.call_ended(call.id, false);
}

void InputRounds::timed_out(Call &call) {
  if (call.input->settled()) return proceed(call);  // the pause is over
  withdraw(call);
  needs_.ends.fail(call, code::timeout,
                   "the input that " + server_of(call) + "asks for was not given in time",
                   BH_OUTCOME_TIMEOUT);
}

// Returns true if the calls that wait for input, with `more` additional bytes of this call, exceed
// a limit.
bool InputRounds::is_full(const Call &call, std::size_t more) const {
  const auto load = [](const Call &one) {
    return one.session == nullptr ? nullptr : one.session->load.get();
  };
  std::size_t all = more, of_client = more;
  needs_.calls.for_each([&](const Call &one) {
    if (one.stage != Stage::asking) return;
    const std::size_t bytes = one.input->request.message.size() + one.input->round.bytes();
    all += bytes;
    if (load(one) == load(call)) of_client += bytes;
  });
  return all > max_waiting_bytes || (!has_session(call) && of_client > max_bytes_per_client);
}

}  // namespace bulkhead
