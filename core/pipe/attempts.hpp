// When the next connection is attempted, and what is logged about the attempts. Owner: Route.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "pipe/route_limits.hpp"

namespace bulkhead::pipe {

inline constexpr std::uint64_t ms_in_ns = 1'000'000;

std::string seconds(std::uint64_t ns);  // "1.5 s"

class Attempts {
 public:
  explicit Attempts(const RouteLimits &limits) : limits_(limits) {}

  void start(std::uint64_t now_ns) noexcept { started_ns_ = now_ns; }
  // No further attempt follows this failed one: there was no connection within start_ms, or the
  // address is wrong.
  bool was_last(std::uint64_t now_ns, const Error &error) const noexcept;
  // The attempt has failed; the next one follows after retry_ms(). Returns the text for the log;
  // empty: none.
  std::string failed(std::uint64_t now_ns, const std::string &endpoint, const Error &error);
  std::uint64_t retry_ms() const noexcept { return retry_ms_; }
  // Likewise returns the text for the log.
  std::string connected(std::uint64_t now_ns, const std::string &endpoint);
  // Returns the time until the next attempt. A connection that stood for steady_ms is replaced at
  // once, others later each time.
  std::uint64_t lost(std::uint64_t now_ns);

 private:
  const RouteLimits &limits_;
  std::uint64_t started_ns_ = 0, connected_ns_ = 0, lost_ns_ = 0;
  std::uint64_t reminded_ns_ = 0;  // last line about this outage; 0: none
  std::uint64_t retry_ms_ = 0;
  bool stood_ = false;  // there was a connection
};

}  // namespace bulkhead::pipe
