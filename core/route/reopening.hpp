// Which sealed session ids may be taken up again by this process, and which have ended for good.
//
// A sealed id carries its session, so an evicted session needs no memory here, and stays in reach
// however many others are evicted after it. What is remembered are the exceptions: ids of sessions
// that ended otherwise, and evicted ones whose seal does not last until they would be too old.
//
// Bounds: max_ids of each. Of too many ended ones the earliest could be taken up again, by who
// holds the id and until its seal expires; of the others the earliest are refused.
// Owner: the Router. Thread: [io].
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

  // idle_ns: limits.session_idle_ms, as it is now. takes_earlier: sessions of earlier processes
  // cannot have been idle for so long.
  bool allows(std::string_view id, SealTime sealed, std::uint64_t now_ns, std::uint64_t idle_ns,
              bool takes_earlier) const {
    if (ended_.holds(id)) return false;
    if (evicted_.holds(id, now_ns, idle_ns)) return true;
    return sealed.earlier_process ? takes_earlier : now_ns - sealed.ns < lasts_ns(idle_ns);
  }
  void ended(std::string_view id, std::uint64_t now_ns) { ended_.add(id, now_ns); }
  // Of a session that ended in an earlier process.
  void ended_before(std::uint64_t key, std::uint64_t now_ns) { ended_.add_key(key, now_ns); }
  // Its client may come back for idle_ns at least.
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
