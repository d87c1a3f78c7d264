// What goes on record of one request, for bh_host_event: where it went and what came of it, without
// the query, which may hold credentials.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "builtin-http/url.hpp"

namespace builtin_http {

struct NetEvent {
  const char *decision = "allowed";  // "allowed", "denied", "error"
  std::string_view method = "GET";
  std::uint32_t status = 0;          // 0: there was no answer
  std::uint64_t bytes_sent = 0;      // of the body
  std::uint64_t bytes_received = 0;  // of the decoded body
  std::uint64_t duration_ms = 0;
  std::string_view reason;
};

// A JSON object of at most BH_EVENT_BYTES.
std::string net_event(const Url &url, const NetEvent &event);

}  // namespace builtin_http
