#include "telemetry-otlp/exporter.hpp"

#include <bulkhead/cpp/clock.hpp>

#include <algorithm>

#include "telemetry-otlp/span.hpp"

namespace otlp {
namespace {

constexpr std::uint64_t max_answer_bytes = 64 << 10, first_backoff_ms = 500;
using bh::ns_per_ms;

// Adds jitter, so that gateways do not all retry at the same time.
std::uint64_t spread(std::uint64_t ms, std::uint64_t now_ns) {
  return ms - ms / 4 + (now_ns / 1'000) % (ms / 2 + 1);
}

}  // namespace

bool retryable(std::uint32_t status) noexcept {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

void Exporter::add(std::string span) {
  if (spans_.size() >= config_.queue_spans) return dropped_(1);
  spans_.push_back(std::move(span));
  if (post_ != nullptr || backoff_ms_ != 0) return;
  if (timer_ == 0) return wait(config_.flush_ms);
  if (spans_.size() == config_.batch_spans) wait(0);
}

void Exporter::wait(std::uint64_t ms) {
  host_.timer_cancel(timer_);
  timer_ = host_.timer_start(ms, bh::callback(this, [](Exporter &self) {
                               self.timer_ = 0;
                               const bh_status sent = bh::guarded(nullptr, [&] {
                                 self.send();
                                 return BH_OK;
                               });
                               if (sent == BH_OK) return;
                               self.post_.reset();  // out of memory; the spans stay queued
                               self.wait(self.config_.flush_ms);
                             }));
}

void Exporter::send() {
  if (post_ != nullptr || spans_.empty()) return;
  if (batch_ == 0) {
    batch_ = static_cast<std::size_t>(std::min<std::uint64_t>(spans_.size(), config_.batch_spans));
    first_try_ns_ = host_.now_ns();
  }
  post_ = std::make_unique<egress::Post>(
      host_, config_.traces, max_answer_bytes,
      [this](egress::Post::Answer &&answer) { answered(std::move(answer)); });
  post_->start(traces_body(config_.service_name, spans_, batch_));
}

void Exporter::answered(egress::Post::Answer &&answer) {
  const auto ended = std::move(post_);
  const bool sent = answer.problem.empty() && answer.status >= 200 && answer.status < 300;
  if (sent) {
    note({});
    spans_.erase(spans_.begin(), spans_.begin() + static_cast<std::ptrdiff_t>(batch_));
    batch_ = 0;
    backoff_ms_ = 0;
  } else {
    const bool status_known = answer.problem.empty();
    const std::string problem =
        status_known ? "HTTP status " + std::to_string(answer.status) : answer.problem;
    if (!status_known || retryable(answer.status)) return retry(answer.retry_after_s, problem);
    note(problem);
    drop_batch();
  }
  if (!spans_.empty()) wait(spans_.size() >= config_.batch_spans ? 0 : config_.flush_ms);
}

void Exporter::drop_batch() {
  dropped_(batch_);
  spans_.erase(spans_.begin(), spans_.begin() + static_cast<std::ptrdiff_t>(batch_));
  batch_ = 0;
  backoff_ms_ = 0;
}

void Exporter::retry(std::uint64_t retry_after_s, const std::string &problem) {
  note(problem);
  const std::uint64_t now = host_.now_ns();
  const std::uint64_t pause =
      std::min(config_.backoff_max_ms, backoff_ms_ == 0 ? first_backoff_ms : backoff_ms_ * 2);
  if (now - first_try_ns_ >= config_.retry_for_ms * ns_per_ms) {
    drop_batch();
    if (spans_.empty()) return;
  }
  backoff_ms_ = pause;  // the next batch starts with this delay
  wait(std::max(spread(pause, now), retry_after_s * 1'000));
}

// Logs the first failure and the recovery, but not every attempt.
void Exporter::note(const std::string &problem) {
  if (problem.empty() != failing_) return;
  failing_ = !failing_;
  host_.log(
      failing_ ? BH_LOG_WARN : BH_LOG_INFO,
      "the collector " + config_.traces.shown() +
          (failing_ ? ": " + problem +
                          "; spans are queued and retried; they are dropped after retry_for_ms, if "
                          "the collector rejects them, or if the queue is full"
                    : " accepts spans again"));
}

}  // namespace otlp
