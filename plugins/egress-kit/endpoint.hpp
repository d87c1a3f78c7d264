// The only server to which a plugin sends requests: HTTPS to any host, or HTTP on this machine.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace egress {

struct Endpoint {
  static constexpr std::size_t max_url = 4096, max_headers = 32, max_header_bytes = 16 << 10;
  static constexpr std::uint64_t min_timeout_ms = 10, max_timeout_ms = 60'000;

  std::string url;
  std::string socket;  // path of a Unix socket; if empty, the host of the URL is used
  std::vector<std::pair<std::string, std::string>> headers;  // may contain credentials
  std::uint64_t timeout_ms = 2'000;                          // for one complete request
  bool loopback = false;                                     // connect only to loopback addresses

  // Returns the endpoint's name for log and error messages, such as "https://pdp.example:8443". It
  // omits the path and all other components that may contain credentials.
  std::string shown() const;
};

// Returns true if read_endpoint() reads this key.
bool endpoint_key(std::string_view key);

// Reads "url", "socket", "headers" and "timeout_ms". `out` may contain defaults. Returns the error,
// or an empty string on success. The error names the key but contains no values.
std::string read_endpoint(const rapidjson::Value &config, Endpoint *out);

// Returns true if `address` is a loopback address: 127.0.0.0/8, ::1 or ::ffff:127.0.0.0/104.
bool is_loopback_address(std::string_view address);

}  // namespace egress
