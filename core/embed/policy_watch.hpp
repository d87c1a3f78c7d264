// Detects when a policy in this process does not return from a call. Such a policy blocks the
// reactor thread, so the process cannot recover, and the handler terminates it.
//
// A separate thread checks for hangs several times per time limit. The overhead is three atomic
// stores per request.
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
  // Called once, on the watch's thread, when a request has been running for between limit_ms and
  // about 1.25 * limit_ms.
  using OnHang = std::function<void(std::string_view policy, std::uint64_t limit_ms)>;

  // The state that the thread keeps from one check to the next.
  class Looks {
   public:
    // `steps` is the value of steps_ at this check. Returns true if the same request was in
    // progress at this check and at each of the `most` checks before.
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

  // Marks a request as in progress for as long as the object exists. Must be used on the reactor
  // thread. `watch` may be null. `policy` must outlive the watch.
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
  std::atomic<std::uint64_t> steps_{0};  // odd while a request is in progress
  std::atomic<const std::string *> policy_{nullptr};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::thread thread_;
};

// Sets the function that terminates this process when a policy hangs. If it is null, policies are
// not monitored. The handler applies to the entire process and must be set once, before the first
// Host is created.
void set_policy_hang_handler(PolicyWatch::OnHang handler);
const PolicyWatch::OnHang &policy_hang_handler() noexcept;

// The exit code of a compartment in which a policy hung. The compartment's log names the policy.
inline constexpr int exit_policy_hangs = 70;

// Returns the log message for a process that exits because a policy hung.
std::string hang_text(std::string_view policy, std::uint64_t limit_ms);

}  // namespace bulkhead
