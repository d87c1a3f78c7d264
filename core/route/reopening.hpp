// Decides whether a client may resume a session by presenting its sealed session id.
//
// A sealed id contains the state of its session. Therefore, evicted sessions need no memory here,
// and any number of them can be resumed. Only two kinds of ids are stored: ids of sessions that
// ended for other reasons and must not be resumed, and ids of evicted sessions that can be resumed
// even after their seals have expired.
//
// Limits: max_ids ids of each kind. If too many sessions end, the oldest ids are removed, and their
// sessions could be resumed until their seals expire. If too many evicted sessions are stored,
// those with the oldest ids can no longer be resumed.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "route/recent_ids.hpp"

namespace bulkhead {

// The time at which a session id was sealed, on the machine's monotonic clock, and whether an
// earlier process sealed it.
struct SealTime {
  std::uint64_t ns = 0;
  bool earlier_process = false;
};

class Reopening {
 public:
  static constexpr std::size_t max_ids = 65'536;
  static constexpr std::uint64_t day_ns = 86'400ull * 1'000'000'000u;

  // Returns true if a client may resume the session with this id. `idle_ns` is the current
  // limits.session_idle_ms. `takes_earlier` is true if no session of an earlier process can have
  // been idle for longer than `idle_ns`.
  bool allows(std::string_view id, SealTime sealed, std::uint64_t now_ns, std::uint64_t idle_ns,
              bool takes_earlier) const {
    if (ended_.holds(id)) return false;
    if (evicted_.holds(id, now_ns, idle_ns)) return true;
    return sealed.earlier_process ? takes_earlier : now_ns - sealed.ns < lasts_ns(idle_ns);
  }
  void ended(std::string_view id, std::uint64_t now_ns) { ended_.add(id, now_ns); }
  // Like ended(), but for a session that ended in an earlier process. `key` is the
  // RecentIds::key_of() of the session's id.
  void ended_before(std::uint64_t key, std::uint64_t now_ns) { ended_.add_key(key, now_ns); }
  // Called when a session is evicted. The client may resume it for at least idle_ns.
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
