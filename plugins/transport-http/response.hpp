// Writes HTTP answers and server-sent events onto a connection, each in one system call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bulkhead/abi/core.h"
#include "connection.hpp"

namespace transport_http {

struct Answer {
  int status = 200;
  std::string_view content_type = "application/json";
  std::string_view extra{};  // further header lines, each ending in CR LF
  std::span<const bh_str> parts{};
};

// Sends a whole answer with its length and frees the connection for the next request.
void respond(Connection &connection, const Answer &answer);

// An answer whose body is a JSON-RPC error without an id (the request's is not known here).
void respond_error(Connection &connection, int status, int code, std::string_view message,
                   std::string_view extra = {});

// One event of a stream. An id is written when sequence_known; the data is the parts' text.
struct Event {
  std::string_view name{};  // "event:" line; empty: none
  bool has_id = false;
  std::uint64_t stream = 0;
  std::uint32_t sequence = 0;
  std::span<const bh_str> parts{};
};

// Starts an event stream: the head, and an empty event that tells the client from where to resume
// when `prime` is given. extra as in Answer.
bool begin_events(Connection &connection, std::string_view extra, const Event *prime);
// One event; `last` ends the stream and frees the connection.
bool send_event(Connection &connection, const Event &event, bool last = false);
// A comment, which clients skip: keeps proxies and time-outs quiet.
bool send_comment(Connection &connection);
// Ends a stream without a further event.
void end_events(Connection &connection);

}  // namespace transport_http
