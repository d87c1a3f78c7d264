// Access control of the server: Host protects against DNS rebinding, Origin and Sec-Fetch-Site
// against web pages, and a token against other clients on the machine or the network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transport_http {

struct GuardConfig {
  std::vector<std::string> hosts;    // "name" (any port) or "name:port", besides loopback names
  std::vector<std::string> origins;  // "scheme://host[:port]", besides loopback origins
  std::string token;                 // empty if no token is required
};

class Guard {
 public:
  // Maximum length of an Origin, which answers repeat.
  static constexpr std::size_t max_origin = 256;

  // `port` is the listening port. It is 0 for a Unix socket; any port in Host is then accepted. If
  // by_address is set, Host may be an IP address with this port. This is used for non-loopback
  // addresses: a rebound name cannot be an address, and a configuration cannot list all addresses
  // of 0.0.0.0.
  Guard(GuardConfig config, std::uint16_t port, bool by_address);

  bool host_allowed(std::string_view host) const noexcept;
  bool origin_allowed(std::string_view origin) const noexcept;
  // Checks Sec-Fetch-Site in a request without Origin. (Browsers send no Origin in a GET for an
  // image, a frame or a script.) Returns false if another page caused the request. An empty value,
  // from a client that is not a browser, is allowed.
  static bool fetch_site_allowed(std::string_view site) noexcept;
  // `authorization` is the header's value. The comparison takes constant time.
  bool token_matches(std::string_view authorization) const noexcept;
  bool wants_token() const noexcept { return !config_.token.empty(); }

 private:
  GuardConfig config_;
  std::vector<std::string> local_;  // allowed Host headers such as "127.0.0.1:8808"
  std::uint16_t port_;
  bool by_address_;
};

}  // namespace transport_http
