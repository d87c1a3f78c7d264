#include "route/client_inputs.hpp"

#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/for_each.hpp"
#include "mcp/methods.hpp"
#include "route/protocol.hpp"

namespace bulkhead {
namespace {

constexpr std::uint64_t ns_per_milli = 1'000'000;

std::string joined_parts(const bh_outgoing &message) {
  std::string out;
  for (std::uint32_t i = 0; i < message.part_count; ++i) out.append(bh::view(message.parts[i]));
  return out;
}

// Returns a copy of a JSON object without the members for which `drop` returns true.
template <class Drop>
std::string without_members(std::string_view object, const Drop &drop) {
  std::string out = "{";
  mcp::for_each_member(object, [&](std::string_view key, std::string_view value) {
    if (drop(key)) return;
    if (out.size() > 1) out += ',';
    out.append(key).append(":").append(value);
  });
  return out + "}";
}

// Converts the params of an ask for a client of 2026-07-28. Removes the members that this revision
// does not have, and _meta, because no progress can be sent for an input.
std::string params_for_client(std::string_view params) {
  if (!params.starts_with('{')) return {};
  return without_members(params, [&](std::string_view key) {
    return key == R"("elicitationId")" || key == R"("task")" || key == R"("_meta")";
  });
}

ParkedOwner owner_of(const Session &s) {
  return {RequestStates::principal_of(s), peer_group(s.address),
          s.connection != 0 ? std::to_string(s.connection) : s.address};
}

}  // namespace

ClientInputs::ClientInputs(const ParkedLimits &limits, std::uint32_t first_generation, Needs needs)
    : needs_(std::move(needs)), inputs_(limits, first_generation) {}

ClientInputs::~ClientInputs() {
  needs_.reactor.forget(this);
}

Call *ClientInputs::call_of(std::uint64_t number) {
  return needs_.calls.get(inputs_.call_of(number));
}

// ---- asking ----------------------------------------------------------------------------------

std::string ClientInputs::ask(Call &call, std::uint64_t ask, const AskText &text) {
  if (call.session == nullptr) return "the client has disconnected";
  if (!RequestStates::can_seal(call)) {
    return "the request is too large to be kept until the client repeats it";
  }
  ParkedAsk one{ask, std::string(mcp::to_string(text.method)), params_for_client(text.params),
                text.answer_ms};
  inputs_.limit_asks(needs_.limits.asks_per_session);
  const auto known = inners_.find(call.session->handle);
  std::string why = known == inners_.end() ? park(call, std::move(one))
                                           : inputs_.add_ask(known->second->number, std::move(one),
                                                             needs_.reactor.now_ns());
  start_timer();
  return why;
}

// Returns an error message if the call cannot be parked, and an empty string otherwise.
std::string ClientInputs::park(Call &call, ParkedAsk ask) {
  Session &s = *call.session;
  const auto number = inputs_.park(owner_of(s), call.id, std::move(ask), needs_.reactor.now_ns());
  if (!number) return number.error();
  auto inner = std::make_unique<Inner>(*this, *number);
  Session *request = needs_.hand_over(s, *inner);
  if (request == nullptr) {
    inputs_.forget(*number);
    return "the client has disconnected";
  }
  inners_.emplace(s.handle, std::move(inner));
  const ReplyTo &reply = call.request.reply;
  waiting_.emplace(
      request->handle,
      Waiting{{request->handle, reply.stream, 0, reply.form}, call.request.id, *number});
  inputs_.wait(*number, request->handle);
  return {};
}

void ClientInputs::withdrawn(bh_session session, std::uint64_t ask) {
  const auto inner = inners_.find(session);
  if (inner != inners_.end()) inputs_.remove_ask(inner->second->number, ask);
}

// The stage is changed first, because the client may call back while the response is sent to it.
void ClientInputs::close_round(const ParkedInputs::Due &due) {
  if (Call *call = needs_.calls.get(due.call)) {
    if (call->session != nullptr) call->session->parked = true;
    if (call->stage == Stage::suspended) call->stage = Stage::awaiting_repeat;
    if (call->stage == Stage::awaiting_repeat) give_up_place(*call);
  }
  for (const std::uint64_t request : due.requests) {
    auto waiting = waiting_.extract(request);
    if (waiting.empty()) continue;
    if (awaits_end(due.number)) {
      inputs_.wait(due.number, request);
      waiting_.insert(std::move(waiting));
      continue;
    }
    send_round(waiting.mapped().reply, waiting.mapped().id, due.number);
  }
}

// Returns true if the call has ended but its final response is held back until its record has been
// stored.
bool ClientInputs::awaits_end(std::uint64_t number) {
  const ParkedInput *parked = inputs_.find(number);
  return parked != nullptr && parked->phase() != ParkedInput::Phase::ended &&
         call_of(number) == nullptr;
}

void ClientInputs::send_round(const ReplyTo &reply, std::string_view id, std::uint64_t number) {
  const Call *call = call_of(number);
  const ParkedInput *parked = inputs_.find(number);
  if (parked != nullptr && parked->phase() == ParkedInput::Phase::ended) {
    return send_end(reply, id, parked->end_text(), parked->http_status());
  }
  if (call == nullptr || parked == nullptr) {
    return needs_.answers.error(reply, id, code::invalid_params,
                                to_string(RetryFault::unknown_call));
  }
  const std::uint64_t expires_ns =
      needs_.reactor.now_ns() + (parked->answer_ms() + ParkedInputs::rejoin_ms) * ns_per_milli;
  const auto state = needs_.states.seal(inputs_.ticket(number), *call, expires_ns);
  if (!state) {
    return needs_.answers.error(reply, id, code::internal_error,
                                "the gateway could not create the requestState");
  }
  needs_.answers.result(reply, id,
                        R"({"resultType":"input_required","inputRequests":)" +
                            parked->input_requests() + R"(,"requestState":)" + *state + "}");
}

// ---- repeated requests -----------------------------------------------------------------------

void ClientInputs::repeat(Session &s, Incoming &request, const ParkedTicket &ticket,
                          std::string_view responses) {
  const auto result = inputs_.retry(RequestStates::principal_of(s), ticket, s.handle, responses,
                                    needs_.reactor.now_ns());
  if (!result) {
    return needs_.answers.error(request, code::invalid_params, to_string(result.error()));
  }
  request.recorded = true;  // as a part of its call
  start_timer();
  const ParkedInput &parked = *inputs_.find(ticket.number);
  switch (parked.phase()) {
    case ParkedInput::Phase::asked:
      if (awaits_end(ticket.number)) {
        waiting_.emplace(s.handle,
                         Waiting{request.reply, std::string(request.id()), ticket.number});
        return inputs_.wait(ticket.number, s.handle);
      }
      return send_round(request.reply, request.id(), ticket.number);
    case ParkedInput::Phase::ended:
      return send_end(request.reply, request.id(), parked.end_text(), parked.http_status());
    case ParkedInput::Phase::working:
    case ParkedInput::Phase::collecting:
      break;
  }
  waiting_.emplace(s.handle, Waiting{request.reply, std::string(request.id()), ticket.number});
  continue_call(ticket.number, s, request.message);
  deliver(ticket.number, result->answers);
}

// From now on, the call uses the log level and the progress token of the repeated request.
void ClientInputs::continue_call(std::uint64_t number, const Session &s, const Message &request) {
  Call *call = call_of(number);
  if (call == nullptr || call->session == nullptr) return;
  call->session->parked = false;
  call->session->log_level = s.log_level;
  call->request.progress_token.assign(request[request.scan->progress_token]);
  if (call->stage != Stage::awaiting_repeat) return;
  call->stage = Stage::suspended;
  take_place_again(*call);
}

// Looks up the call again for each answer, because any answer may end the call.
void ClientInputs::deliver(std::uint64_t number, const std::vector<ParkedInput::Answer> &answers) {
  for (const ParkedInput::Answer &answer : answers) {
    const Call *call = call_of(number);
    if (call == nullptr || call->session == nullptr) return;
    std::string text = R"({"jsonrpc":"2.0","id":)" + std::to_string(answer.ask);
    text.append(R"(,"result":)").append(answer.result).append("}");
    mcp::Scan scan;
    mcp::ScanError error;
    if (mcp::scan(text, &scan, &error)) needs_.asks.answered(*call->session, {text, &scan});
  }
}

// ---- messages to the session of a parked call ------------------------------------------------

void ClientInputs::sent(std::uint64_t number, const bh_outgoing &message) {
  if (message.kind == BH_OUT_ANSWER) return sent_answer(number, message);
  const ParkedInput *parked = inputs_.find(number);
  const auto waiting = waiting_.find(parked == nullptr ? 0 : parked->newest());
  if (waiting == waiting_.end()) return;  // no request waits whose stream could carry the message
  needs_.answers.send(waiting->second.reply, message.kind, message.parts, message.part_count);
}

void ClientInputs::sent_answer(std::uint64_t number, const bh_outgoing &message) {
  std::string end;
  const std::string text = joined_parts(message);
  mcp::Scan scan;
  mcp::ScanError error;
  if (!text.empty() && mcp::scan(text, &scan, &error)) {
    const bool ok = scan.kind == mcp::Kind::result;
    end = ok ? R"("result":)" : R"("error":)";
    end.append((ok ? scan.result : scan.error).in(text));
  }
  // A cancelled call has no response that could be stored.
  const std::vector<std::uint64_t> requests =
      end.empty() ? inputs_.forget(number)
                  : inputs_.end(number, end, needs_.reactor.now_ns(), message.http_status);
  for (const std::uint64_t request : requests) {
    const auto waiting = waiting_.extract(request);
    if (waiting.empty()) continue;
    send_end(waiting.mapped().reply, waiting.mapped().id, end, message.http_status);
  }
  start_timer();
}

// Does not wait for records, because the call's record has already been stored.
void ClientInputs::send_end(const ReplyTo &reply, std::string_view id, std::string_view end,
                            std::uint32_t http_status) {
  if (end.empty()) return needs_.answers.none(reply);
  const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"), bh::str(id), bh::str(","),
                          bh::str(end), bh::str("}")};
  needs_.answers.send(reply, BH_OUT_ANSWER, parts, 5, http_status);
}

// ---- ends ------------------------------------------------------------------------------------

void ClientInputs::cancel(const Session &s, const Message &notification) {
  const auto waiting = waiting_.extract(s.handle);
  if (waiting.empty()) return;
  const std::uint64_t number = waiting.mapped().number;
  Call *call = call_of(number);
  if (inputs_.leave(number, s.handle)) {
    inputs_.forget(number);
    if (call != nullptr) needs_.ends.cancel(*call, notification);
  }
  needs_.answers.none(waiting.mapped().reply);
  start_timer();
}

void ClientInputs::ended(const Session &s) {
  if (const auto waiting = waiting_.extract(s.handle); !waiting.empty()) {
    const std::uint64_t number = waiting.mapped().number;
    const Call *call = call_of(number);
    if (!inputs_.leave(number, s.handle)) return;
    inputs_.forget(number);
    start_timer();
    if (call != nullptr && call->session != nullptr) needs_.close(call->session->handle);
    return;
  }
  const auto inner = inners_.extract(s.handle);
  if (inner.empty()) return;
  const std::uint64_t number = inner.mapped()->number;
  const ParkedInput *parked = inputs_.find(number);
  if (parked == nullptr || parked->phase() == ParkedInput::Phase::ended) return;
  for (const std::uint64_t request : inputs_.forget(number)) waiting_.erase(request);
}

void ClientInputs::end_unanswered(const ParkedInputs::Due &due) {
  Call *call = needs_.calls.get(due.call);
  if (call == nullptr) return;
  needs_.ends.end_unanswered(
      *call, "the client did not repeat its request with the requested input in time");
}

// The requests that wait for the call get the error that a repeated request would get.
void ClientInputs::end_evicted(const ParkedInputs::Due &due) {
  for (const std::uint64_t request : due.requests) {
    const auto waiting = waiting_.extract(request);
    if (waiting.empty()) continue;
    needs_.answers.error(waiting.mapped().reply, waiting.mapped().id, code::invalid_params,
                         to_string(RetryFault::evicted));
  }
  if (Call *call = needs_.calls.get(due.call)) {
    needs_.ends.end_evicted(*call, to_string(RetryFault::evicted));
  }
}

// ---- timer -----------------------------------------------------------------------------------

void ClientInputs::start_timer() {
  const auto next_ns = inputs_.next_ns();
  if (timer_ != 0 && next_ns && timer_ns_ <= *next_ns) return;
  if (timer_ != 0) needs_.reactor.timer_cancel(std::exchange(timer_, 0));
  if (!next_ns) return;
  const std::uint64_t now = needs_.reactor.now_ns();
  const std::uint64_t wait_ns = *next_ns > now ? *next_ns - now : 0;
  timer_ns_ = *next_ns;
  timer_ = needs_.reactor.timer_start(this, wait_ns / ns_per_milli + 1,
                                      bh::callback<&ClientInputs::turn>(this));
}

void ClientInputs::turn() {
  timer_ = 0;
  for (const ParkedInputs::Due &due : inputs_.due(needs_.reactor.now_ns())) {
    switch (due.kind) {
      case ParkedInputs::Due::Kind::round:
        close_round(due);
        break;
      case ParkedInputs::Due::Kind::unanswered:
        end_unanswered(due);
        break;
      case ParkedInputs::Due::Kind::evicted:
        end_evicted(due);
        break;
      case ParkedInputs::Due::Kind::forgotten:
        break;
    }
  }
  start_timer();
}

}  // namespace bulkhead
