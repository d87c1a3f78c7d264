// Starts children on separate threads. Each thread waits while one child starts, so the reactor
// thread does not block and several children can start in parallel.
//
// The first start creates the first thread. A later start creates another thread if all threads are
// busy. No thread exits before this object is destroyed, because the kernel kills a child when the
// thread that started it exits. Internal to core/sandbox. Owner: a Spawner. Must be used on the
// reactor thread.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "sandbox/child.hpp"

namespace bulkhead {

// The stacks of a child's two processes while they run the gateway's code.
class ChildStacks {
 public:
  // This is sufficient because the calls are not deeply nested and the stack holds at most one
  // path.
  static constexpr std::size_t bytes = 64u << 10;

  ChildStacks() : memory_(std::make_unique_for_overwrite<std::byte[]>(2 * bytes)) {}
  // Stores the upper ends of the stacks in the plan. They are 16-byte aligned, as the calling
  // conventions require.
  void assign_to(ChildPlan *plan) const noexcept {
    plan->first_stack = memory_.get() + bytes;
    plan->second_stack = memory_.get() + 2 * bytes;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
};

class Starters {
 public:
  // Maximum number of parallel starts. Additional starts are queued.
  static constexpr std::size_t most = 16;

  Starters() = default;
  ~Starters();  // no start may be in progress; the kernel kills all running children
  Starters(const Starters &) = delete;
  Starters &operator=(const Starters &) = delete;

  // Creates the descriptor returned by finished_fd(). If this fails, start() must not be called.
  bool prepare();
  // Becomes readable when next_finished() may return a plan.
  int finished_fd() const noexcept { return finished_event_.get(); }
  // Queues a plan. The plan is borrowed until its phase is `over` and either next_finished() has
  // returned it or forget() has removed it from the list of finished plans. Returns false if there
  // is no thread and none can be created.
  bool start(ChildPlan *plan);
  ChildPlan *next_finished() noexcept;  // returns null if no finished plan is left
  void forget(ChildPlan *plan) noexcept;

 private:
  static void *thread_main(void *self);
  bool add_thread();
  void work();
  void finish(ChildPlan *plan) noexcept;

  OwnedFd finished_event_;
  std::vector<pthread_t> threads_;
  std::vector<std::unique_ptr<ChildStacks>> stacks_;  // one per thread, preallocated
  std::mutex mutex_;                                  // guards the members below
  std::condition_variable wanted_;
  ChildPlan *first_ = nullptr, *last_ = nullptr;  // pending starts
  ChildPlan *finished_ = nullptr;
  std::size_t queued_ = 0, idle_ = 0, running_ = 0;
  bool ending_ = false;
};

}  // namespace bulkhead
