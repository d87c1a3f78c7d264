// The loop that runs the steps of calls, one step at a time. If an event arrives during a step, it
// is queued on its call (CallEvents) and handled after the step. A finished call is freed only when
// no step is running, so a step can use its call after every callback. Call::ended() returns true
// for a finished call.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "route/call.hpp"

namespace bulkhead {

class CallLoop {
 public:
  class Handler {
   public:
    virtual ~Handler() = default;
    // Handles all queued events of the call. The call may finish in this function.
    virtual void handle_events(Call &call) = 0;
  };
  CallLoop(CallTable &calls, Handler &handler) : calls_(calls), handler_(handler) {}

  // The scope of a step. Steps may open nested scopes. When the outermost scope exits, queued
  // events are handled and finished calls are freed.
  class Run {
   public:
    explicit Run(CallLoop &loop) noexcept : loop_(loop), outermost_(!loop.running_) {
      loop.running_ = true;
    }
    ~Run() {
      if (outermost_) loop_.finish();
    }
    Run(const Run &) = delete;
    Run &operator=(const Run &) = delete;

   private:
    CallLoop &loop_;
    const bool outermost_;
  };

  // Returns true while a step is running. Events must then be queued.
  bool running() const noexcept { return running_; }

  // ---- queue an event; call only inside a Run ----
  void post(Call &call, CallEvent event);
  void post_decision(Call &call, const Gate::Decision &decision);
  void post_checked(Call &call, bool duplicates);
  void post_approval(Call &call, bool allowed, ApprovalSurface surface, const ApprovalScope &scope);
  void post_withdrawal(Call &call, std::string_view why);
  // If `owned` is not null, the response's bytes are moved out of it. Otherwise, they are copied.
  void post_answer(Call &call, const Message &answer, std::string *owned);
  // `event` is CallEvent::failed or CallEvent::ended.
  void post_failure(Call &call, CallEvent event, CallFailure failure);
  void post_cancellation(Call &call, const Message &notification);

  // Frees the call when the outermost Run exits. The call must have been retired with
  // NumberedTable::retire().
  void free_later(Call &call) noexcept {
    call.ended_next = ended_;
    ended_ = &call;
  }

 private:
  // Queues the event and returns its details. Returns null if an event of this kind is already
  // queued.
  EventDetails *details_for(Call &call, CallEvent event);
  void finish() {
    if (first_ != nullptr) handle_queued();
    free_ended();
    running_ = false;
  }
  void handle_queued();
  void free_ended();

  CallTable &calls_;
  Handler &handler_;
  Call *first_ = nullptr, *last_ = nullptr;  // calls with queued events
  Call *ended_ = nullptr;
  bool running_ = false;
};

}  // namespace bulkhead
