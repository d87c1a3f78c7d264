// Threads that start children. Each waits while one child gets ready, so that the reactor's thread
// does not, and children that are started together get ready together.
//
// Made with the first child, one more whenever all are at work, and kept as long as there are
// children: the kernel ends a child with the thread that started it. Internal to core/sandbox.
// Owner: a Spawner. Thread: its own, for all that is called here.
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

// The stacks of a child's two processes, while they run our code.
class ChildStacks {
 public:
  // Each side calls shallowly and holds one path at most.
  static constexpr std::size_t bytes = 64u << 10;

  ChildStacks() : memory_(std::make_unique_for_overwrite<std::byte[]>(2 * bytes)) {}
  // Their upper ends. (16: what the processors' calling conventions ask of a stack.)
  void give(ChildPlan *plan) const noexcept {
    plan->first_stack = memory_.get() + bytes;
    plan->second_stack = memory_.get() + 2 * bytes;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
};

class Starters {
 public:
  // So many children get ready side by side; a further start waits for one of them.
  static constexpr std::size_t most = 16;

  Starters() = default;
  ~Starters();  // no start may be under way: of all children it ends those that still run
  Starters(const Starters &) = delete;
  Starters &operator=(const Starters &) = delete;

  // Makes what finished_fd() needs; on failure start() must not be called.
  bool prepare();
  // Readable while next_finished() may have one.
  int finished_fd() const noexcept { return finished_event_.get(); }
  // The plan is borrowed until it is `over`, and stays listed until next_finished() or forget().
  // False: there is no thread and none can be made.
  bool start(ChildPlan *plan);
  ChildPlan *next_finished() noexcept;  // null: no more
  void forget(ChildPlan *plan) noexcept;

 private:
  static void *thread_main(void *self);
  bool add_thread();
  void work();
  void finish(ChildPlan *plan) noexcept;

  OwnedFd finished_event_;
  std::vector<pthread_t> threads_;
  std::vector<std::unique_ptr<ChildStacks>>
      stacks_;        // one for each thread, which allocates nothing
  std::mutex mutex_;  // guards what follows
  std::condition_variable wanted_;
  ChildPlan *first_ = nullptr, *last_ = nullptr;  // to be started
  ChildPlan *finished_ = nullptr;
  std::size_t queued_ = 0, idle_ = 0, running_ = 0;
  bool ending_ = false;
};

}  // namespace bulkhead
