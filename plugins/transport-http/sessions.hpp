// Stores the client sessions of this transport by host handle and client ID. Runs on the reactor
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bulkhead/abi/ext/transport.h"
#include "event_ring.hpp"

namespace transport_http {

class Connection;

// 128 bits from the operating system's random source. A client receives the ID as 32 hex digits. If
// the host can resume sessions, a dot and the sealed state for the host's next process follow.
struct SessionId {
  std::uint64_t high = 0, low = 0;
  bool operator==(const SessionId &) const = default;

  static std::optional<SessionId> random() noexcept;
  // Parses an ID that a client has sent: hex digits, optionally followed by a dot and sealed state.
  static std::optional<SessionId> parse(std::string_view text) noexcept;
  std::string text() const;
};

// A POST with a pending response.
struct Stream {
  std::uint64_t number = 0;
  Connection *connection = nullptr;  // null after the connection broke, until the client resumes
  std::uint32_t sequence = 0;        // sequence number of the newest event
  bool events = false;               // the response is an event stream
};

// A message that is held until it is known whether its session has an ID.
struct HeldMessage {
  std::uint32_t kind = 0;
  std::uint64_t stream = 0;
  std::uint32_t http_status = 0;
  std::string data;
};

struct Session {
  enum class Kind : std::uint8_t { streamable, http_sse };

  bh_session handle = 0;
  SessionId id;
  std::string sealed;  // ".…", appended to the ID for the client
  Kind kind = Kind::streamable;
  std::string peer;        // see peer_key()
  bool ready = false;      // the client has sent notifications/initialized
  bool kept = false;       // opened by `initialize` or HTTP+SSE; others end with their only request
  bool announced = false;  // the ID was sent to the client
  bool hold = false;       // messages are stored in `held`
  bool ended = false;      // removed; the object is freed at the end of the event
  std::uint64_t last_used_ns = 0;
  std::uint64_t next_stream = 1;
  Connection *general = nullptr;  // the GET stream, or the stream of HTTP+SSE
  std::uint32_t general_sequence = 0;
  std::uint32_t general_written = 0;  // the last event that was written to a general stream
  std::vector<Stream> streams;
  std::vector<HeldMessage> held;
  EventRing ring;

  Stream *find(std::uint64_t number) noexcept;
  void erase(std::uint64_t number) noexcept;
  bool in_use() const noexcept { return general != nullptr || !streams.empty() || hold; }
};

class Sessions {
 public:
  Session &add(bh_session handle, const SessionId &id);
  // Makes it possible to find the session by its ID.
  void publish(Session &session) { by_id_[session.id] = &session; }
  Session *find(bh_session handle) noexcept;
  Session *find(std::string_view id) noexcept;
  // Removes the session from the tables. reap() frees it.
  void forget(Session &session);
  void reap() noexcept { forgotten_.clear(); }
  std::size_t size() const noexcept { return by_handle_.size(); }

  // Calls f for each session. f may remove the session that is passed to it.
  template <class F>
  void for_each(F &&f) {
    for (auto it = by_handle_.begin(); it != by_handle_.end();) {
      Session &session = *it->second;
      ++it;
      f(session);
    }
  }

 private:
  struct IdHash {
    std::size_t operator()(const SessionId &id) const noexcept { return id.low; }
  };
  std::unordered_map<bh_session, std::unique_ptr<Session>> by_handle_;
  std::unordered_map<SessionId, Session *, IdHash> by_id_;
  std::vector<std::unique_ptr<Session>> forgotten_;
};

}  // namespace transport_http
