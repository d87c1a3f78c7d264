// A thread pool for work that may block. The numbers of threads and queued jobs are limited.
// Threads are started on demand and exit when the pool is destroyed. `done` runs on the reactor
// thread. Owned by the Reactor.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "bulkhead/abi/core.h"

namespace bulkhead {

class BlockingPool {
 public:
  struct Job {
    const void *owner = nullptr;
    void (*work)(void *) = nullptr;
    void (*done)(void *) = nullptr;
    void *arg = nullptr;
  };

  // finished(job) is called on a pool thread after the job's work has been done.
  BlockingPool(std::uint32_t max_threads, std::uint32_t max_waiting,
               std::function<void(const Job &)> finished);
  // Drops the jobs that have not started, so that neither `work` nor `done` is called for them, and
  // waits for the others.
  ~BlockingPool();

  // Returns BH_E_LIMIT if the queue is full. Thread-safe.
  bh_status submit(const Job &job);

 private:
  void worker();

  const std::uint32_t max_threads_;
  const std::uint32_t max_waiting_;
  const std::function<void(const Job &)> finished_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> waiting_;
  std::vector<std::thread> threads_;
  std::uint32_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace bulkhead
