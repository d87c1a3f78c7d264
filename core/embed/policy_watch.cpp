#include "embed/policy_watch.hpp"

#include <chrono>
#include <utility>

namespace bulkhead {

PolicyWatch::PolicyWatch(std::uint64_t limit_ms, OnHang on_hang)
    : limit_ms_(limit_ms), on_hang_(std::move(on_hang)), thread_([this] { look(); }) {}

PolicyWatch::~PolicyWatch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void PolicyWatch::look() {
  const auto pause = std::chrono::milliseconds(limit_ms_ / Looks::most + 1);
  Looks looks;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, pause, [this] { return ending_; })) {
    if (!looks.hangs(steps_.load(std::memory_order_acquire))) continue;
    const std::string *policy = policy_.load(std::memory_order_relaxed);
    return on_hang_(policy == nullptr ? std::string_view() : *policy, limit_ms_);
  }
}

namespace {

PolicyWatch::OnHang &handler_slot() noexcept {
  static PolicyWatch::OnHang handler;
  return handler;
}

}  // namespace

void set_policy_hang_handler(PolicyWatch::OnHang handler) {
  handler_slot() = std::move(handler);
}

const PolicyWatch::OnHang &policy_hang_handler() noexcept {
  return handler_slot();
}

std::string hang_text(std::string_view policy, std::uint64_t limit_ms) {
  return "the policy \"" + std::string(policy) + "\" has not returned for more than " +
         std::to_string(limit_ms) +
         " ms (limits.policy_timeout_ms, but at least 1000), which blocks its process: the process "
         "is terminated, and the call fails";
}

}  // namespace bulkhead
