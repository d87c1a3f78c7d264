// Determines when to make the next connection attempt and which log messages to write. Owned by
// Route.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "pipe/route_limits.hpp"

namespace bulkhead::pipe {

inline constexpr std::uint64_t ms_in_ns = 1'000'000;

std::string seconds(std::uint64_t ns);  // returns "1.5 s"

class Attempts {
 public:
  explicit Attempts(const RouteLimits &limits) : limits_(limits) {}

  void start(std::uint64_t now_ns) noexcept { started_ns_ = now_ns; }
  // Returns true if the route must give up after this failure: no connection has ever been open,
  // and either start_ms has passed or the address is wrong.
  bool was_last(std::uint64_t now_ns, const Error &error) const noexcept;
  // Must be called after each failed attempt. The next attempt is made after retry_ms(). Returns
  // the message to log, or an empty string.
  std::string failed(std::uint64_t now_ns, const std::string &endpoint, const Error &error);
  std::uint64_t retry_ms() const noexcept { return retry_ms_; }
  // Returns the message to log, or an empty string.
  std::string connected(std::uint64_t now_ns, const std::string &endpoint);
  // Must be called after the connection has been lost. Returns the delay in ms before the next
  // attempt: 0 if the connection lasted at least steady_ms, and otherwise the current retry delay,
  // which is 0 before the first failure and then increases up to max_retry_ms.
  std::uint64_t lost(std::uint64_t now_ns);

 private:
  const RouteLimits &limits_;
  std::uint64_t started_ns_ = 0, connected_ns_ = 0, lost_ns_ = 0;
  std::uint64_t reminded_ns_ = 0;  // time of this outage's last log line, or 0
  std::uint64_t retry_ms_ = 0;
  bool stood_ = false;  // a connection has been open before
};

}  // namespace bulkhead::pipe
