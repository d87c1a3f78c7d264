#include "reactor/blocking_pool.hpp"

#include <pthread.h>
#include <signal.h>

namespace bulkhead {

BlockingPool::BlockingPool(std::uint32_t max_threads, std::uint32_t max_waiting,
                           std::function<void(const Job &)> finished)
    : max_threads_(max_threads), max_waiting_(max_waiting), finished_(std::move(finished)) {}

BlockingPool::~BlockingPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    waiting_.clear();
  }
  wake_.notify_all();
  for (auto &thread : threads_) thread.join();
}

bh_status BlockingPool::submit(const Job &job) {
  const std::lock_guard lock(mutex_);
  if (ending_ || waiting_.size() >= max_waiting_) return BH_E_LIMIT;
  waiting_.push_back(job);
  // Compare the number of waiting jobs with the number of idle threads. It is not enough to check
  // whether any thread is idle, because a thread that has been woken counts as idle until it holds
  // the lock.
  if (waiting_.size() > idle_ && threads_.size() < max_threads_) {
    // Pool threads block all signals, so that signals are delivered only to other threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    threads_.emplace_back([this] { worker(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  wake_.notify_one();
  return BH_OK;
}

void BlockingPool::worker() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    --idle_;
    if (ending_) return;
    const Job job = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    job.work(job.arg);
    finished_(job);
    lock.lock();
  }
}

}  // namespace bulkhead
