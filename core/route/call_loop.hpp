// The loop of the request pipeline. It runs the steps of one call after the other and never nests:
// an event that arrives while a step runs is queued on its call (CallEvents) and handled after the
// step. Calls that have ended are freed when no step runs, so that a step may use its call after
// each callback; Call::ended() tells whether there is still something to do.
//
// Thread: I/O thread. Owned by the Router.
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
    // Handles the queued events of the call, which may end.
    virtual void handle_events(Call &call) = 0;
  };
  CallLoop(CallTable &calls, Handler &handler) : calls_(calls), handler_(handler) {}

  // The scope in which steps run. The outermost one handles the queued events at its end, then
  // frees the calls that have ended.
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

  // A step runs: events are queued.
  bool running() const noexcept { return running_; }

  // ---- queueing, inside a Run ----
  void post(Call &call, CallEvent event);
  void post_decision(Call &call, const Gate::Decision &decision);
  void post_checked(Call &call, bool duplicates);
  void post_approval(Call &call, bool allowed, ApprovalSurface surface, const ApprovalScope &scope);
  void post_withdrawal(Call &call, std::string_view why);
  // owned: the bytes of the answer, which are moved; null: they are copied.
  void post_answer(Call &call, const Message &answer, std::string *owned);
  // event: failed or ended.
  void post_failure(Call &call, CallEvent event, CallFailure failure);
  void post_cancellation(Call &call, const Message &notification);

  // Frees a retired call (NumberedTable::retire()) when no step runs.
  void free_later(Call &call) noexcept {
    call.ended_next = ended_;
    ended_ = &call;
  }

 private:
  // Null: an event of this kind is queued already.
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
