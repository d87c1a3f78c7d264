// Writes HTTP responses and server-sent events to a connection, each with a single system call
// unless the socket's buffer is full.
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
  std::string_view extra{};  // more header lines, each with CR LF
  std::span<const bh_str> parts{};
};

// Sends a complete response, including its length. Then the connection becomes idle or is closed.
void respond(Connection &connection, const Answer &answer);

// Sends a JSON-RPC error without an ID, for requests whose ID is unknown.
void respond_error(Connection &connection, int status, int code, std::string_view message,
                   std::string_view extra = {});

// A server-sent event. The concatenated parts are its data.
struct Event {
  std::string_view name{};  // value of the "event:" line; no line if empty
  bool has_id = false;
  std::uint64_t stream = 0;
  std::uint32_t sequence = 0;
  std::span<const bh_str> parts{};
};

// Starts an event stream. If `prime` is not null, also sends an empty event, whose ID allows the
// client to resume the stream. `extra` contains additional header lines, each terminated by CR LF.
// Returns false if the connection must be destroyed, like the functions below.
bool begin_events(Connection &connection, std::string_view extra, const Event *prime);
// Sends one event. If `last` is true, also ends the stream, as end_events() does.
bool send_event(Connection &connection, const Event &event, bool last = false);
// Sends a comment, which prevents time-outs in proxies. Clients ignore comments.
bool send_comment(Connection &connection);
// Ends a stream without another event. Then the connection becomes idle or is closed.
void end_events(Connection &connection);

}  // namespace transport_http
