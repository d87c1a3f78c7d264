#include "builtin-http/call.hpp"

#include <algorithm>

#include "tool-kit/results.hpp"

namespace builtin_http {
namespace {

constexpr std::uint64_t tick_ms = 1000;

}  // namespace

void Call::start(std::uint64_t deadline_ns, bool wants_progress) {
  std::uint64_t end = host_.now_ns() + config_.timeout_ms * 1'000'000;
  if (deadline_ns != 0) end = std::min(end, deadline_ns);
  if (wants_progress) watch();
  fetcher_.start(std::move(task_->request), end);
}

void Call::fetched(const std::string &problem) {
  if (problem.empty()) return convert();
  finish(tool_kit::error_result(problem));
}

void Call::convert() {
  converting_ = true;
  const auto work = [](Call &call) {
    const bh_status status = bh::guarded(nullptr, [&] {
      call.result_ = call.task_->result(call.fetcher_.response(), call.cancelled_);
      return BH_OK;
    });
    if (status != BH_OK) call.result_ = R"({"content":[],"isError":true})";  // out of memory
  };
  const auto done = [](Call &call) { call.converted(); };
  if (host_.run_blocking(bh::blocking_work(this, work, done)) == BH_OK) return;
  converting_ = false;
  finish(tool_kit::error_result("too many pages are being converted; try again"));
}

void Call::converted() {
  converting_ = false;
  if (stopped_) return owner_.gone(id_);
  if (!cancelled_.load()) finish(std::move(result_));
}

void Call::cancel() {
  if (stopped_ || cancelled_.exchange(true)) return;
  fetcher_.stop();
  host_.defer(bh::callback(this, [](Call &call) {
    if (!call.stopped_) call.finish(tool_kit::error_result("the call was cancelled"));
  }));
}

void Call::stop() noexcept {
  stopped_ = true;
  cancelled_.store(true, std::memory_order_relaxed);
  fetcher_.stop();
  host_.timer_cancel(timer_);
}

void Call::finish(std::string &&result) {
  stop();
  owner_.answer(id_, std::move(result));
  if (!converting_) owner_.gone(id_);  // may delete this object
}

// ---- progress ----------------------------------------------------------------------------------

void Call::watch() {
  timer_ = host_.timer_start(tick_ms, bh::callback<&Call::tick>(this));
}

void Call::tick() {
  timer_ = 0;
  const std::string message = converting_ ? std::string("converting the page")
                                          : std::to_string(fetcher_.received()) + " bytes received";
  owner_.progress(id_, ++seconds_, static_cast<double>(config_.timeout_ms) / 1000, message);
  watch();
}

}  // namespace builtin_http
