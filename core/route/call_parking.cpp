#include "route/call_parking.hpp"

#include <memory>

namespace bulkhead {

void CallParking::wait(Call &call, Stage stage, std::size_t bytes) const {
  call.stage = stage;
  deadlines_.arm(call, stage_time_ms(limits_, stage, bytes));
}

bool CallParking::park(Call &call, const CallInHand &hand, Stage stage) const {
  const std::size_t bytes = hand.message.size() + hand.arguments.size();
  const bool counted = stage != Stage::approving && stage != Stage::asking;
  if (counted && !waiting_.take(bytes)) return false;
  call.parked = std::make_unique<ParkedCall>(parked(hand));
  call.parked->bytes = counted ? bytes : 0;
  call.waited = true;
  wait(call, stage, bytes);
  return true;
}

bool CallParking::park_answer(Call &call, const Message &answer, Stage stage) const {
  if (!waiting_.take(answer.size())) return false;
  call.parked = std::make_unique<ParkedCall>();
  call.parked->message = ParkedMessage(answer);
  call.parked->bytes = answer.size();
  wait(call, stage, answer.size());
  return true;
}

CallInHand CallParking::take(Call &call) const {
  CallInHand hand = call.parked->in_hand();
  discard(call);
  return hand;
}

void CallParking::discard(Call &call) const {
  call.stage = Stage::open;
  if (call.parked == nullptr) return;
  waiting_.give_back(call.parked->bytes);
  call.parked = nullptr;
}

}  // namespace bulkhead
