// Determines which sealed session ids this process may resume, and which have ended permanently.
//
// A sealed id contains its session. Therefore, an evicted session uses no memory here, and can be
// resumed no matter how many other sessions are evicted after it. Only the exceptions are stored:
// ids of sessions that ended for other reasons, and ids of evicted sessions whose seals expire
// before they are too old to resume.
//
// Limits: max_ids of each type. If there are too many ended ids, the holder of the oldest id could
// resume its session until its seal expires. If there are too many evicted ids, the oldest are
// refused.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "route/recent_ids.hpp"

namespace bulkhead {

struct SealTime {
  std::uint64_t ns = 0;
  bool earlier_process = false;
};

class Reopening {
 public:
  static constexpr std::size_t max_ids = 65'536;
  static constexpr std::uint64_t day_ns = 86'400ull * 1'000'000'000u;

  // idle_ns is the current value of limits.session_idle_ms. takes_earlier is true if sessions of
  // earlier processes cannot have been idle for longer than that.
  bool allows(std::string_view id, SealTime sealed, std::uint64_t now_ns, std::uint64_t idle_ns,
              bool takes_earlier) const {
    if (ended_.holds(id)) return false;
    if (evicted_.holds(id, now_ns, idle_ns)) return true;
    return sealed.earlier_process ? takes_earlier : now_ns - sealed.ns < lasts_ns(idle_ns);
  }
  void ended(std::string_view id, std::uint64_t now_ns) { ended_.add(id, now_ns); }
  // For a session that ended in an earlier process.
  void ended_before(std::uint64_t key, std::uint64_t now_ns) { ended_.add_key(key, now_ns); }
  // Called when a session is evicted. Its client may resume it for at least idle_ns.
  void evicted(std::string_view id, SealTime sealed, std::uint64_t now_ns, std::uint64_t idle_ns) {
    const bool lasts = now_ns - sealed.ns + idle_ns <= lasts_ns(idle_ns);
    if (sealed.earlier_process || !lasts) evicted_.add(id, now_ns);
  }
  void reopened(std::string_view id) { evicted_.forget(id); }

 private:
  static std::uint64_t lasts_ns(std::uint64_t idle_ns) noexcept {
    return std::max(day_ns, 2 * idle_ns);
  }

  RecentIds ended_{max_ids}, evicted_{max_ids};
};

}  // namespace bulkhead
