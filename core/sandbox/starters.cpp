#include "sandbox/starters.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>

namespace bulkhead {
namespace {

// The children use separate stacks, so a thread's own stack holds only a few frames and the C
// library's data.
constexpr std::size_t thread_stack_bytes = 256u << 10;

}  // namespace

Starters::~Starters() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wanted_.notify_all();
  for (const pthread_t thread : threads_) ::pthread_join(thread, nullptr);
}

bool Starters::prepare() {
  if (!finished_event_) finished_event_ = OwnedFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return static_cast<bool>(finished_event_);
}

bool Starters::start(ChildPlan *plan) {
  std::unique_lock lock(mutex_);
  if (idle_ <= queued_ && threads_.size() < most && !add_thread() && threads_.empty()) return false;
  plan->next = nullptr;
  (last_ == nullptr ? first_ : last_->next) = plan;
  last_ = plan;
  ++queued_;
  lock.unlock();
  wanted_.notify_one();
  return true;
}

// The new threads block all signals, so that signals are delivered only to other threads.
bool Starters::add_thread() {
  threads_.reserve(most);
  stacks_.reserve(most);
  if (stacks_.size() == threads_.size()) stacks_.push_back(std::make_unique<ChildStacks>());
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return false;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const bool made = ::pthread_attr_setstacksize(&attributes, thread_stack_bytes) == 0 &&
                    ::pthread_create(&thread, &attributes, thread_main, this) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (!made) return false;
  threads_.push_back(thread);
  ++idle_;
  return true;
}

void *Starters::thread_main(void *self) {
  static_cast<Starters *>(self)->work();
  return nullptr;
}

void Starters::work() {
  std::unique_lock lock(mutex_);
  const ChildStacks &stacks = *stacks_[running_++];
  for (;;) {
    wanted_.wait(lock, [this] { return first_ != nullptr || ending_; });
    if (first_ == nullptr) return;
    ChildPlan *plan = first_;
    first_ = plan->next;
    if (first_ == nullptr) last_ = nullptr;
    --queued_;
    --idle_;
    lock.unlock();
    stacks.assign_to(plan);
    start_child(plan);
    lock.lock();
    ++idle_;
    finish(plan);
  }
}

void Starters::finish(ChildPlan *plan) noexcept {
  plan->next = finished_;
  finished_ = plan;
  const std::uint64_t one = 1;
  static_cast<void>(::write(finished_event_.get(), &one, sizeof one) == sizeof one);
  reach(plan, SpawnPhase::over);
}

ChildPlan *Starters::next_finished() noexcept {
  const std::lock_guard lock(mutex_);
  ChildPlan *plan = finished_;
  if (plan != nullptr) {
    finished_ = plan->next;
    return plan;
  }
  std::uint64_t count = 0;
  // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): read() does not block
  static_cast<void>(::read(finished_event_.get(), &count, sizeof count) == sizeof count);
  return nullptr;
}

void Starters::forget(ChildPlan *plan) noexcept {
  const std::lock_guard lock(mutex_);
  for (ChildPlan **at = &finished_; *at != nullptr; at = &(*at)->next) {
    if (*at != plan) continue;
    *at = plan->next;
    return;
  }
}

}  // namespace bulkhead
