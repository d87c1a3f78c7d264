// Access control of the server: Host against DNS rebinding, Origin and Sec-Fetch-Site against web
// pages, a token against other clients on the machine or the network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transport_http {

struct GuardConfig {
  std::vector<std::string> hosts;    // "name" (any port) or "name:port", in addition to loopback
                                     // names
  std::vector<std::string> origins;  // "scheme://host[:port]", in addition to loopback ones
  std::string token;                 // empty: no token is required
};

class Guard {
 public:
  // Limit of an Origin, which is echoed in answers.
  static constexpr std::size_t max_origin = 256;

  // port: the listening port, 0 for a Unix socket (then any port in Host is accepted). by_address:
  // an IP address with this port is accepted as Host, too. For addresses beyond loopback: a rebound
  // name cannot be an address, and a configuration cannot list all addresses of 0.0.0.0.
  Guard(GuardConfig config, std::uint16_t port, bool by_address);

  bool host_allowed(std::string_view host) const noexcept;
  bool origin_allowed(std::string_view origin) const noexcept;
  // Sec-Fetch-Site of a request without Origin: browsers send no Origin with a GET for an image, a
  // frame or a script. False: another page caused the request. Empty (not a browser) is allowed.
  static bool fetch_site_allowed(std::string_view site) noexcept;
  // authorization: the header's value. The time does not depend on where they differ.
  bool token_matches(std::string_view authorization) const noexcept;
  bool wants_token() const noexcept { return !config_.token.empty(); }

 private:
  GuardConfig config_;
  std::vector<std::string> local_;  // "127.0.0.1:8808" ..., in the form of Host headers
  std::uint16_t port_;
  bool by_address_;
};

}  // namespace transport_http
