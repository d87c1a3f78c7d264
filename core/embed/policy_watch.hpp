// Notices that a policy of this process does not return. Nothing can be done about it from inside:
// the loop's thread is in the policy's hands, so whoever is told ends the process.
//
// A thread looks a few times per limit; what it costs a call is two stores.
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
  // Called once, from the watch's thread, after limit_ms to 1.25 * limit_ms inside one question.
  using OnHang = std::function<void(std::string_view policy, std::uint64_t limit_ms)>;

  // What the thread sees, look by look.
  class Looks {
   public:
    // `steps`: grows by one when a question begins and when it ends. True: one is not over, and
    // was not over for `most` looks before.
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

  // Around each question, on the loop's thread. `watch` may be null. `policy` outlives the watch.
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
  std::atomic<std::uint64_t> steps_{0};  // odd: inside a question
  std::atomic<const std::string *> policy_{nullptr};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::thread thread_;
};

// What ends this process when a policy in it hangs; null: nobody watches. For the whole process, so
// it is set once, before the first Host.
void set_policy_hang_handler(PolicyWatch::OnHang handler);
const PolicyWatch::OnHang &policy_hang_handler() noexcept;

// The exit code of a compartment that ended so; its log says which policy it was.
inline constexpr int exit_policy_hangs = 70;

// For the log of the process that ends because of it.
std::string hang_text(std::string_view policy, std::uint64_t limit_ms);

}  // namespace bulkhead
