// Restricts access to the server. Checking Host protects against DNS rebinding; checking Origin and
// Sec-Fetch-Site protects against web pages; a token protects against other clients on this machine
// or the network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transport_http {

struct GuardConfig {
  std::vector<std::string> hosts;    // "name" (any port) or "name:port", besides loopback names
  std::vector<std::string> origins;  // "scheme://host[:port]", in addition to loopback origins
  std::string token;                 // empty if no token is required
};

class Guard {
 public:
  // Maximum length of an Origin, which is copied to the response.
  static constexpr std::size_t max_origin = 256;

  // `port` is the listening port. For a Unix socket, it is 0, and Host may have any port. If
  // by_address is true, Host may be any IP address with this port. This is used for non-loopback
  // listeners: a list of names cannot cover all addresses of 0.0.0.0, and DNS rebinding requires a
  // name.
  Guard(GuardConfig config, std::uint16_t port, bool by_address);

  bool host_allowed(std::string_view host) const noexcept;
  bool origin_allowed(std::string_view origin) const noexcept;
  // Checks Sec-Fetch-Site in requests without Origin. Browsers omit Origin in a GET for an image, a
  // frame or a script. Returns false if another site caused the request. Clients other than
  // browsers do not send Sec-Fetch-Site, so an empty value is allowed.
  static bool fetch_site_allowed(std::string_view site) noexcept;
  // Returns true if the Authorization header has a bearer token, right or wrong.
  static bool has_token(std::string_view authorization) noexcept;
  // Compares the value of the Authorization header with the token in constant time.
  bool token_matches(std::string_view authorization) const noexcept;
  bool wants_token() const noexcept { return !config_.token.empty(); }

 private:
  GuardConfig config_;
  std::vector<std::string> local_;  // allowed values of Host, such as "127.0.0.1:8808"
  std::uint16_t port_;
  bool by_address_;
};

// Limits the log lines about wrong tokens to one a minute.
class WrongTokens {
 public:
  static constexpr std::uint64_t interval_ns = 60'000'000'000;

  // Counts a request. If a line is due, returns the number of requests since the last line, and
  // otherwise 0. The first request is always due.
  std::uint64_t add(std::uint64_t now_ns) noexcept;

 private:
  std::uint64_t count_ = 0, next_ns_ = 0;
};

}  // namespace transport_http
