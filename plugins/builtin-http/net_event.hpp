// The record of one request for bh_host_event: its target and outcome. The query is omitted,
// because it may contain credentials.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "builtin-http/url.hpp"

namespace builtin_http {

struct NetEvent {
  const char *decision = "allowed";  // "allowed", "denied" or "error"
  std::string_view method = "GET";
  std::uint32_t status = 0;          // 0 if there was no response
  std::uint64_t bytes_sent = 0;      // size of the body
  std::uint64_t bytes_received = 0;  // size of the decoded body
  std::uint64_t duration_ms = 0;
  std::string_view reason;
};

// Returns a JSON object of at most BH_EVENT_BYTES bytes.
std::string net_event(const Url &url, const NetEvent &event);

}  // namespace builtin_http
