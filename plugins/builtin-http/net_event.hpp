// Formats the record of an HTTP request for bh_host_event. The query of the URL is omitted because
// it may contain credentials.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "builtin-http/url.hpp"

namespace builtin_http {

struct NetEvent {
  const char *decision = "allowed";  // "allowed", "denied" or "error"
  std::string_view method = "GET";
  std::uint32_t status = 0;          // 0 if no response was received
  std::uint64_t bytes_sent = 0;      // size of the request body
  std::uint64_t bytes_received = 0;  // size of the decoded response body
  std::uint64_t duration_ms = 0;
  std::string_view reason;
};

// Returns a JSON object of at most BH_EVENT_BYTES bytes.
std::string net_event(const Url &url, const NetEvent &event);

}  // namespace builtin_http
