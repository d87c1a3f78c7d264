// Parses the endpoint to which a plugin sends its requests. An HTTPS endpoint may be on any host;
// an HTTP endpoint must be on the local machine.
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
  std::string socket;  // path of a Unix socket; if empty, connects to the URL's host
  std::vector<std::pair<std::string, std::string>> headers;  // may contain credentials
  std::uint64_t timeout_ms = 2'000;                          // for one complete request
  bool loopback = false;                                     // connect only to loopback addresses

  // Returns the endpoint for log and error messages ("https://pdp.example:8443" or "unix:PATH"),
  // without the path of the URL and other parts that may contain credentials.
  std::string shown() const;
};

// Returns true if `key` is one of the keys that read_endpoint() reads.
bool endpoint_key(std::string_view key);

// Reads "url", "socket", "headers" and "timeout_ms" into `out`, which may contain defaults. Returns
// an error that names the key but contains no values, or an empty string on success.
std::string read_endpoint(const rapidjson::Value &config, Endpoint *out);

// Returns true if `address` is a loopback address: 127.0.0.0/8, ::1 or ::ffff:127.0.0.0/104.
bool is_loopback_address(std::string_view address);

}  // namespace egress
