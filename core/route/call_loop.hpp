// The request pipeline loop. It runs the steps of calls one at a time and never nests them: an
// event that arrives while a step is running is queued on its call (CallEvents) and handled after
// the step. Ended calls are freed only when no step is running, so a step may use its call after
// each callback. Call::ended() returns true if the call has ended.
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
    // Handles the call's queued events. May end the call.
    virtual void handle_events(Call &call) = 0;
  };
  CallLoop(CallTable &calls, Handler &handler) : calls_(calls), handler_(handler) {}

  // The scope in which steps run. When the outermost scope ends, queued events are handled and
  // ended calls are freed.
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

  // Returns true while a step is running. Events are then queued.
  bool running() const noexcept { return running_; }

  // ---- queueing, inside a Run ----
  void post(Call &call, CallEvent event);
  void post_decision(Call &call, const Gate::Decision &decision);
  void post_checked(Call &call, bool duplicates);
  void post_approval(Call &call, bool allowed, ApprovalSurface surface, const ApprovalScope &scope);
  void post_withdrawal(Call &call, std::string_view why);
  // `owned` contains the bytes of the answer, which are moved. If it is null, the bytes are copied.
  void post_answer(Call &call, const Message &answer, std::string *owned);
  // `event` is `failed` or `ended`.
  void post_failure(Call &call, CallEvent event, CallFailure failure);
  void post_cancellation(Call &call, const Message &notification);

  // Frees a retired call (NumberedTable::retire()) once no step is running.
  void free_later(Call &call) noexcept {
    call.ended_next = ended_;
    ended_ = &call;
  }

 private:
  // Returns null if an event of this kind is already queued.
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
