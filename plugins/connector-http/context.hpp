// Holds the state that all lanes of one plugin instance share.
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

// Limits and time-outs. The plugin sets message_bytes, header_bytes, write_queue_bytes and
// connect_timeout_ms from bh_limits, and limits delete_wait_ms to the host's shutdown_grace_ms.
struct Settings {
  std::uint64_t message_bytes = 64ull << 20;
  std::uint64_t header_bytes = 32ull << 10;
  std::uint64_t write_queue_bytes = 80ull << 20;
  std::uint64_t connect_timeout_ms = 10'000;
  std::uint64_t endpoint_wait_ms = 10'000;  // time-out for the `endpoint` event of HTTP+SSE
  std::uint64_t delete_wait_ms = 1'000;     // time-out for the DELETE of a session
  std::uint64_t hold_ms = 1'000;            // time-out for the response to `initialized`
  std::uint64_t retry_ms = 1'000;           // delay before an event stream is reopened
  std::uint64_t retry_min_ms = 20, retry_max_ms = 300'000;  // limits for the server's `retry` field
  std::uint64_t backoff_max_ms = 30'000;
  std::uint64_t quiet_post_ms = 60'000;     // time-out for a POST whose response body is ignored
  std::uint64_t lingering_ms = 10'000;      // time-out for a stream after the response
  std::uint32_t repeats = 3;                // maximum number of retries after Retry-After
  std::size_t repeatable_bytes = 64 << 10;  // larger requests are not retried
  std::uint32_t resume_attempts = 5;        // consecutive attempts without an event
  std::uint32_t stream_failures = 3;        // consecutive failures before lane_down
  std::size_t error_body_bytes = 64 << 10;  // maximum number of bytes read from an error response
  std::size_t queued_messages = 1024;       // per lane, while messages cannot be sent
};

struct Context {
  Context(const bh_host *raw, const bh_host_connector *up_table, const Settings &s);
  ~Context();

  // Logs `text`, prefixed with the server's name. `text` must not contain headers or bodies.
  void log(std::int32_t level, std::string_view server, std::string_view text) const;
  // Returns `ms`, randomly increased or reduced by up to a quarter.
  std::uint64_t jittered(std::uint64_t ms) noexcept;

  Post *take_post();
  void put_post(Post *post) noexcept;

  // At the end of the event loop iteration, deletes the lane and reports lane_closed.
  void lane_finished(Lane *lane);
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
  void delete_retired();

  std::vector<std::unique_ptr<Post>> posts_;  // all Post objects, including those in free_posts_
  std::vector<Post *> free_posts_;
  std::vector<Lane *> finished_;
  bool deletion_pending_ = false;
  bh_timer sweep_timer_ = 0;
  std::uint64_t random_;
};

}  // namespace connector_http
