#include "route/call_loop.hpp"

#include <utility>

namespace bulkhead {

void CallLoop::post(Call &call, CallEvent event) {
  if (!call.events.push(event) || call.queued) return;
  call.queued = true;
  call.queued_next = nullptr;
  (last_ == nullptr ? first_ : last_->queued_next) = &call;
  last_ = &call;
}

EventDetails *CallLoop::details_for(Call &call, CallEvent event) {
  if (call.events.has(event)) return nullptr;
  post(call, event);
  return &call.events.details();
}

void CallLoop::post_decision(Call &call, const Gate::Decision &decision) {
  if (EventDetails *d = details_for(call, CallEvent::decided)) d->decision = decision;
}

void CallLoop::post_checked(Call &call, bool duplicates) {
  if (EventDetails *d = details_for(call, CallEvent::checked)) d->duplicates = duplicates;
}

void CallLoop::post_approval(Call &call, bool allowed, ApprovalSurface surface,
                             const ApprovalScope &scope) {
  EventDetails *d = details_for(call, CallEvent::approved);
  if (d == nullptr) return;
  d->allowed = allowed;
  d->surface = surface;
  d->scope = scope;
}

void CallLoop::post_withdrawal(Call &call, std::string_view why) {
  if (EventDetails *d = details_for(call, CallEvent::withdrawn)) d->why = why;
}

void CallLoop::post_answer(Call &call, const Message &answer, std::string *owned) {
  EventDetails *d = details_for(call, CallEvent::answered);
  if (d == nullptr) return;
  d->answer_scan = *answer.scan;
  if (owned != nullptr) {
    d->answer = std::move(*owned);
  } else {
    d->answer.assign(answer.bytes);
  }
}

void CallLoop::post_failure(Call &call, CallEvent event, CallFailure failure) {
  EventDetails *d = details_for(call, event);
  if (d == nullptr) return;
  (event == CallEvent::failed ? d->failure : d->end) = std::move(failure);
}

void CallLoop::post_cancellation(Call &call, const Message &notification) {
  EventDetails *d = details_for(call, CallEvent::cancelled);
  if (d != nullptr) d->cancellation = ParkedMessage(notification);
}

// Handles the queued events of each call, including events that are queued during the loop.
// Finished calls are freed after each iteration, so their slots can be reused even if the loop runs
// for a long time.
void CallLoop::handle_queued() {
  while (first_ != nullptr) {
    Call &call = *first_;
    first_ = call.queued_next;
    if (first_ == nullptr) last_ = nullptr;
    call.queued = false;
    if (!call.ended()) handler_.handle_events(call);
    free_ended();
  }
}

// Frees finished calls, except calls that are still queued. handle_queued() frees those later.
void CallLoop::free_ended() {
  Call *queued = nullptr;
  while (ended_ != nullptr) {
    Call &call = *std::exchange(ended_, ended_->ended_next);
    if (call.queued) {
      call.ended_next = std::exchange(queued, &call);
    } else {
      calls_.recycle(call);
    }
  }
  ended_ = queued;
}

}  // namespace bulkhead
