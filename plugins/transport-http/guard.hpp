// Who may talk to this server: Host against DNS rebinding, Origin and Sec-Fetch-Site against web
// pages, a token against everybody else on the machine or the network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transport_http {

struct GuardConfig {
  std::vector<std::string> hosts;    // "name" (any port) or "name:port", beside the loopback names
  std::vector<std::string> origins;  // "scheme://host[:port]", beside loopback ones
  std::string token;                 // empty: none wanted
};

class Guard {
 public:
  // Longest Origin that is looked at; it is echoed in answers.
  static constexpr std::size_t max_origin = 256;

  // port: the one listened on, 0 for a unix socket (any port in Host is fine then).
  // by_address: also take an IP address with this port as Host. For addresses beyond loopback: a
  // rebound name cannot be an address, and nobody can list all addresses of 0.0.0.0.
  Guard(GuardConfig config, std::uint16_t port, bool by_address);

  bool host_allowed(std::string_view host) const noexcept;
  bool origin_allowed(std::string_view origin) const noexcept;
  // Sec-Fetch-Site of a request without Origin: browsers send none with a GET for an image, a frame
  // or a script. False: another page has caused it. Empty (no browser) is allowed.
  static bool fetch_site_allowed(std::string_view site) noexcept;
  // authorization: the header's value. In time that does not depend on where they differ.
  bool token_matches(std::string_view authorization) const noexcept;
  bool wants_token() const noexcept { return !config_.token.empty(); }

 private:
  GuardConfig config_;
  std::vector<std::string> local_;  // "127.0.0.1:8808" ..., as clients write them
  std::uint16_t port_;
  bool by_address_;
};

}  // namespace transport_http
