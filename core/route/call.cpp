#include "route/call.hpp"

#include <utility>

#include "route/exchange.hpp"
#include "route/lane.hpp"
#include "route/repeated_request.hpp"

namespace bulkhead {

void CallEvents::clear_details() noexcept {
  EventDetails &d = *details_;
  d.decision = {};
  if (d.answer.capacity() > max_kept) std::string().swap(d.answer);
  d.failure = d.end = {};
  d.cancellation = {};
}

void Account::clear(std::size_t max_capacity) noexcept {
  for (std::string *text : {&request, &response, &trace_id, &rule, &reason}) {
    if (text->capacity() > max_capacity) std::string().swap(*text);
    text->clear();
  }
  params_bytes = result_bytes = arguments_begin = arguments_end = 0;
  intent = 0;
  action = flags = events = server_revision = 0;
  dispatched = recorded = more_than_arguments = false;
}

// Does not clear the account. The Recorder clears it, because it counts the account's bytes.
void Call::clear() {
  request.clear();
  session = nullptr;
  method = mcp::Method::none;
  server.clear();
  name.clear();
  stage = Stage::open;
  waited = judged = asked_about = approved = false;
  approved_rule.clear();
  approved_definition = {};
  redefined = 0;
  rules = open_asks = 0;
  parked = nullptr;
  input = nullptr;
  exchange = nullptr;
  answer_form = nullptr;
  judges_inputs = false;
  declared = 0;
  task = TaskRole::none;
  connection = 0;
  created = {};
  bridge = nullptr;
  watches = nullptr;
  events.clear();
}

Lane *lane_of(const Call &call) noexcept {
  return call.exchange != nullptr ? call.exchange->lane : nullptr;
}

void queue_in_lane(Call &call, const CallInHand &hand) {
  call.parked = std::make_unique<ParkedCall>(parked(hand));
  call.waited = true;
  call.stage = Stage::queued;
}

std::unique_ptr<ParkedCall> take_from_lane(Call &call) {
  call.stage = Stage::at_server;
  return std::move(call.parked);
}

void give_up_place(Call &call) {
  Exchange *exchange = call.exchange;
  if (exchange == nullptr || !exchange->sent || !exchange->takes_place) return;
  exchange->takes_place = false;
  --exchange->lane->in_flight;
  exchange->lane->pump();
}

void take_place_again(Call &call) noexcept {
  Exchange *exchange = call.exchange;
  if (exchange == nullptr || !exchange->sent || exchange->takes_place) return;
  exchange->takes_place = true;
  ++exchange->lane->in_flight;
}

bool was_sent(const Call &call) noexcept {
  return call.exchange != nullptr && call.exchange->sent;
}

bool may_have_run(const Call &call) noexcept {
  // A request about a task of the other generation is sent several times.
  const bool sent_before = call.bridge != nullptr && call.account.dispatched;
  return was_sent(call) || sent_before || (call.input != nullptr && call.input->rounds != 0);
}

bool keep_for_input(Call &call, const CallInHand &hand, ClientCaps declared) {
  if (Repetition::in(hand.message)) return false;
  if (call.input == nullptr) call.input = std::make_unique<CallInput>();
  call.input->request = parked(hand);
  call.input->declared = declared;
  return true;
}

}  // namespace bulkhead
