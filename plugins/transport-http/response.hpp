// Writes HTTP answers and server-sent events to a connection, each in one system call.
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
  std::string_view extra{};  // more header lines, each ending with CR LF
  std::span<const bh_str> parts{};
};

// Sends a complete answer with its length and makes the connection idle.
void respond(Connection &connection, const Answer &answer);

// Sends a JSON-RPC error without an id, because the request's id is unknown here.
void respond_error(Connection &connection, int status, int code, std::string_view message,
                   std::string_view extra = {});

// One event of a stream. The id is written if has_id is true. The data consists of the parts.
struct Event {
  std::string_view name{};  // value of the "event:" line; empty for none
  bool has_id = false;
  std::uint64_t stream = 0;
  std::uint32_t sequence = 0;
  std::span<const bh_str> parts{};
};

// Starts an event stream: sends the head and, if `prime` is set, an empty event with the id from
// which the client can resume. `extra` is the same as in Answer.
bool begin_events(Connection &connection, std::string_view extra, const Event *prime);
// Sends one event. If `last` is true, ends the stream and makes the connection idle.
bool send_event(Connection &connection, const Event &event, bool last = false);
// Sends a comment, which clients ignore. It prevents time-outs in proxies.
bool send_comment(Connection &connection);
// Ends a stream without another event.
void end_events(Connection &connection);

}  // namespace transport_http
