// Who has to go when the table of sessions is full.
//
// First sessions whose client has not sent notifications/initialized, then those without an open
// stream, then those with a GET stream only, last those with calls in flight. Among equals, one of
// the peer that has most of them, the least recently used. A few handshakes that have just begun
// are spared, so that clients that come at the same time do not end each other's.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "sessions.hpp"

namespace transport_http {

class Eviction {
 public:
  // `limit`: of sessions; one handshake of 64 sessions is spared.
  explicit Eviction(std::uint64_t limit = 0) : spared_(limit / 64) {}

  // Null: there is no session. Looks at all of them, but for a flood of handshakes once in 64 times
  // only. Valid until the table changes.
  Session *pick(Sessions &sessions, std::uint64_t now_ns);

 private:
  enum class Rank : std::uint8_t { handshake, unused, listening, calling, spared };
  static constexpr std::size_t batch = 64;
  static constexpr std::uint64_t young_ns = 5'000'000'000;

  static Rank rank_of(const Session &session) noexcept;
  Session *next_known(Sessions &sessions);

  std::uint64_t spared_;
  std::deque<std::pair<bh_session, std::uint64_t>> known_;  // handshakes, and when last used
};

}  // namespace transport_http
