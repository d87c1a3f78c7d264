// The record of one request for bh_host_event: target and outcome, without the query, which may
// contain credentials.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "builtin-http/url.hpp"

namespace builtin_http {

struct NetEvent {
  const char *decision = "allowed";  // "allowed", "denied", "error"
  std::string_view method = "GET";
  std::uint32_t status = 0;          // 0: no response
  std::uint64_t bytes_sent = 0;      // of the body
  std::uint64_t bytes_received = 0;  // of the decoded body
  std::uint64_t duration_ms = 0;
  std::string_view reason;
};

// A JSON object of at most BH_EVENT_BYTES.
std::string net_event(const Url &url, const NetEvent &event);

}  // namespace builtin_http
