#include "pipe/attempts.hpp"

#include <algorithm>
#include <utility>

namespace bulkhead::pipe {

std::string seconds(std::uint64_t ns) {
  const std::uint64_t tenths = ns / (100 * ms_in_ns);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

bool Attempts::was_last(std::uint64_t now_ns, const Error &error) const noexcept {
  if (stood_) return false;
  // Retrying does not help if the address is wrong.
  return now_ns - started_ns_ >= limits_.start_ms * ms_in_ns || error.code == BH_E_INVALID ||
         error.code == BH_E_DENIED;
}

std::string Attempts::failed(std::uint64_t now_ns, const std::string &endpoint,
                             const Error &error) {
  retry_ms_ =
      retry_ms_ == 0 ? limits_.first_retry_ms : std::min(2 * retry_ms_, limits_.max_retry_ms);
  if (reminded_ns_ == 0 && !stood_) {
    reminded_ns_ = now_ns;
    return "cannot reach " + endpoint + " yet (" + error.text + "); retrying for " +
           seconds(limits_.start_ms * ms_in_ns);
  }
  if (!stood_ || now_ns - reminded_ns_ < limits_.reminder_ms * ms_in_ns) return {};
  reminded_ns_ = now_ns;
  return "still no connection to " + endpoint + " after " + seconds(now_ns - lost_ns_) + " (" +
         error.text + ")";
}

std::string Attempts::connected(std::uint64_t now_ns, const std::string &endpoint) {
  connected_ns_ = now_ns;
  if (std::exchange(stood_, true)) {
    return "reconnected to " + endpoint + " after " + seconds(connected_ns_ - lost_ns_);
  }
  return reminded_ns_ == 0 ? std::string() : "connected to " + endpoint;
}

std::uint64_t Attempts::lost(std::uint64_t now_ns) {
  lost_ns_ = reminded_ns_ = now_ns;
  const bool steady = lost_ns_ - connected_ns_ >= limits_.steady_ms * ms_in_ns;
  const std::uint64_t delay_ms = steady ? 0 : retry_ms_;
  retry_ms_ = std::clamp(2 * delay_ms, limits_.first_retry_ms, limits_.max_retry_ms);
  return delay_ms;
}

}  // namespace bulkhead::pipe
