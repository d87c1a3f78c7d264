// State shared by the lanes of one plugin instance.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "body_buffer.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/cpp/host.hpp"
#include "http1.hpp"
#include "post.hpp"

namespace connector_http {

class Lane;

// Limits and times. The operator's limits come from bh_limits. The other values are constants that
// tests shorten.
struct Settings {
  std::uint64_t message_bytes = 64ull << 20;
  std::uint64_t header_bytes = 32ull << 10;
  std::uint64_t write_queue_bytes = 80ull << 20;
  std::uint64_t connect_timeout_ms = 10'000;
  std::uint64_t endpoint_wait_ms = 10'000;  // limit for waiting for HTTP+SSE's `endpoint` event
  std::uint64_t delete_wait_ms = 1'000;     // limit for the answer to a session's DELETE
  std::uint64_t hold_ms = 1'000;   // time that requests wait for the response to `initialized`
  std::uint64_t retry_ms = 1'000;  // before an event stream is reopened
  std::uint64_t retry_min_ms = 20, retry_max_ms = 300'000;  // limits for a server's `retry`
  std::uint64_t backoff_max_ms = 30'000;
  std::uint64_t quiet_post_ms = 60'000;     // limit for an unanswered POST of a notification
  std::uint64_t lingering_ms = 10'000;      // limit for a stream that stays open after its answer
  std::uint32_t repeats = 3;                // maximum retries of a request refused with Retry-After
  std::size_t repeatable_bytes = 64 << 10;  // larger requests are not kept for retries
  std::uint32_t resume_attempts = 5;        // consecutive attempts without an event
  std::uint32_t stream_failures = 3;  // consecutive failures to open a stream before lane_down
  std::size_t error_body_bytes = 64 << 10;  // bytes read from the body of an error answer
  std::size_t queued_messages = 1024;       // per lane, while they cannot be sent
};

struct Context {
  Context(const bh_host *raw, const bh_host_connector *up_table, const Settings &s);
  ~Context();

  // Logs a text with the server's name. The text must not contain a header or a body.
  void log(std::int32_t level, std::string_view server, std::string_view text) const;
  // Changes the time by a random amount of up to a quarter.
  std::uint64_t jittered(std::uint64_t ms) noexcept;

  Post *take_post();
  void put_post(Post *post) noexcept;

  void lane_finished(Lane *lane);  // at the end of the event loop iteration, reports lane_closed
                                   // and destroys the lane
  void arm_sweep();
  void stop() noexcept;

  const bh::Host host;
  const bh_host_connector *const up;
  Settings settings;
  Http1Client http1;
  SpareBuffer spare;
  std::string user_agent;
  std::vector<std::unique_ptr<Lane>> lanes;

 private:
  void sweep();
  void bury();

  std::vector<std::unique_ptr<Post>> posts_;  // in use and spare
  std::vector<Post *> free_posts_;
  std::vector<Lane *> finished_;
  bool burial_pending_ = false;
  bh_timer sweep_timer_ = 0;
  std::uint64_t random_;
};

}  // namespace connector_http
