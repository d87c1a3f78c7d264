// Sends spans from a limited queue, one request at a time. A failed request is retried with
// exponential backoff for a limited time.
//
// Runs on the reactor thread.
#pragma once

#include <bulkhead/cpp/host.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "egress-kit/post.hpp"
#include "telemetry-otlp/config.hpp"

namespace otlp {

class Exporter {
 public:
  // dropped(n) is called when n spans are dropped because the queue is full or a batch has failed.
  Exporter(const bh::Host &host, const Config &config, std::function<void(std::uint64_t)> dropped)
      : host_(host), config_(config), dropped_(std::move(dropped)) {}
  ~Exporter() { host_.timer_cancel(timer_); }
  Exporter(const Exporter &) = delete;
  Exporter &operator=(const Exporter &) = delete;

  void add(std::string span);
  std::size_t waiting() const noexcept { return spans_.size(); }

 private:
  void wait(std::uint64_t ms);
  void send();
  void answered(egress::Post::Answer &&answer);
  void drop_batch();
  void retry(std::uint64_t retry_after_s, const std::string &problem);
  void note(const std::string &problem);

  const bh::Host &host_;
  const Config &config_;
  const std::function<void(std::uint64_t)> dropped_;
  std::deque<std::string> spans_;
  std::size_t batch_ = 0;  // how many of the first spans are being sent or retried
  std::unique_ptr<egress::Post> post_;
  bh_timer timer_ = 0;
  std::uint64_t first_try_ns_ = 0, backoff_ms_ = 0;  // backoff_ms_ is 0 unless attempts have failed
  bool failing_ = false;
};

// Returns true if the OTLP specification requires a retry after this HTTP status.
bool retryable(std::uint32_t status) noexcept;

}  // namespace otlp
