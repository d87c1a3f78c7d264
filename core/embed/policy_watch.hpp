// Detects a policy of this process that does not return. The process cannot recover, since the
// policy blocks the loop's thread: the handler ends the process.
//
// A thread checks a few times per limit; the overhead per request is two stores.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace bulkhead {

class PolicyWatch {
 public:
  // Called once, from the watch's thread, after limit_ms to 1.25 * limit_ms inside one request.
  using OnHang = std::function<void(std::string_view policy, std::uint64_t limit_ms)>;

  // The state that the thread keeps from check to check.
  class Looks {
   public:
    // `steps` grows by one when a request begins and when it ends. True: the same request was in
    // progress at `most` earlier checks.
    bool hangs(std::uint64_t steps) noexcept {
      same_ = steps == seen_ && steps % 2 == 1 ? same_ + 1 : 0;
      seen_ = steps;
      return same_ >= most;
    }
    static constexpr int most = 4;

   private:
    std::uint64_t seen_ = 0;
    int same_ = 0;
  };

  PolicyWatch(std::uint64_t limit_ms, OnHang on_hang);
  ~PolicyWatch();
  PolicyWatch(const PolicyWatch &) = delete;
  PolicyWatch &operator=(const PolicyWatch &) = delete;

  // Encloses each request, on the loop's thread. `watch` may be null. `policy` outlives the watch.
  class Question {
   public:
    Question(PolicyWatch *watch, const std::string *policy) noexcept
        : watch_(policy == nullptr ? nullptr : watch) {
      if (watch_ == nullptr) return;
      watch_->policy_.store(policy, std::memory_order_relaxed);
      watch_->step();
    }
    ~Question() {
      if (watch_ != nullptr) watch_->step();
    }
    Question(const Question &) = delete;
    Question &operator=(const Question &) = delete;

   private:
    PolicyWatch *const watch_;
  };

 private:
  void step() noexcept {
    steps_.store(steps_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void look();

  const std::uint64_t limit_ms_;
  const OnHang on_hang_;
  std::atomic<std::uint64_t> steps_{0};  // odd: inside a request
  std::atomic<const std::string *> policy_{nullptr};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::thread thread_;
};

// Sets the function that ends this process when one of its policies hangs; null: policies are not
// watched. It applies to the whole process: set it once, before the first Host is created.
void set_policy_hang_handler(PolicyWatch::OnHang handler);
const PolicyWatch::OnHang &policy_hang_handler() noexcept;

// The exit code of a compartment that ended because a policy hangs; its log names the policy.
inline constexpr int exit_policy_hangs = 70;

// The log message of the process that ends for this reason.
std::string hang_text(std::string_view policy, std::uint64_t limit_ms);

}  // namespace bulkhead
