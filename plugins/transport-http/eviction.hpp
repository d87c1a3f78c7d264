// Selects the session to evict if the session table is full.
//
// Sessions are evicted in this order: sessions whose client has not sent notifications/initialized,
// sessions without an open stream, sessions with only a GET stream, sessions with in-flight calls.
// Within a category, the peer with the most sessions loses its least recently used session. If
// there are only a few handshakes, the recent ones are evicted last, so that clients that connect
// at the same time do not evict each other.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "sessions.hpp"

namespace transport_http {

class Eviction {
 public:
  // `limit` is the size of the session table. Recent handshakes are spared if there are at most
  // limit / 64 handshakes.
  explicit Eviction(std::uint64_t limit = 0) : spared_(limit / 64) {}

  // Returns the session to evict, or null if there is none. The result is valid until the table
  // changes. During a flood of handshakes, all sessions are scanned only at every 64th call.
  Session *pick(Sessions &sessions, std::uint64_t now_ns);

 private:
  enum class Rank : std::uint8_t { handshake, unused, listening, calling, spared };
  static constexpr std::size_t batch = 64;
  static constexpr std::uint64_t young_ns = 5'000'000'000;

  static Rank rank_of(const Session &session) noexcept;
  Session *next_known(Sessions &sessions);

  std::uint64_t spared_;
  std::deque<std::pair<bh_session, std::uint64_t>> known_;  // handshakes, with their last use
};

}  // namespace transport_http
