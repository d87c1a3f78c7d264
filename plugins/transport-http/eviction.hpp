// Selects the session to evict when the table of sessions is full.
//
// The order is: sessions whose client has not sent notifications/initialized, sessions without an
// open stream, sessions with only a GET stream, sessions with in-flight calls. Among equals, the
// least recently used session of the peer with the most such sessions is selected. A few handshakes
// that have just begun are spared, so that clients that connect at the same time do not evict each
// other.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "sessions.hpp"

namespace transport_http {

class Eviction {
 public:
  // `limit` is the maximum number of sessions; one handshake per 64 sessions is spared.
  explicit Eviction(std::uint64_t limit = 0) : spared_(limit / 64) {}

  // Returns null if there is no session. Checks all sessions, except during a flood of handshakes,
  // when it checks them once in 64 calls. The result is valid until the table changes.
  Session *pick(Sessions &sessions, std::uint64_t now_ns);

 private:
  enum class Rank : std::uint8_t { handshake, unused, listening, calling, spared };
  static constexpr std::size_t batch = 64;
  static constexpr std::uint64_t young_ns = 5'000'000'000;

  static Rank rank_of(const Session &session) noexcept;
  Session *next_known(Sessions &sessions);

  std::uint64_t spared_;
  std::deque<std::pair<bh_session, std::uint64_t>> known_;  // handshakes, and the times of their
                                                            // last use
};

}  // namespace transport_http
