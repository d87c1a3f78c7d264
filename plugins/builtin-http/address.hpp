// Filters the IP addresses of connections: permits public Internet addresses and networks that the
// profile allows.
#pragma once

#include <string_view>
#include <vector>

namespace builtin_http {

// Returns true if the address is globally reachable. Returns false if it is invalid, private,
// loopback, link-local (including cloud metadata services), shared, reserved, or a documentation or
// multicast address. Also returns false for IPv6 addresses that embed such an IPv4 address.
bool is_public_address(std::string_view address) noexcept;

// A network or a single address, such as "10.1.0.0/16", "fd00::/8" or "127.0.0.1".
class Network {
 public:
  // Returns false if `text` is invalid or if bits after the prefix are set.
  static bool parse(std::string_view text, Network *out) noexcept;

  // IPv4-mapped IPv6 addresses, such as ::ffff:10.1.2.3, are treated as IPv4 addresses.
  bool contains(std::string_view address) const noexcept;

 private:
  unsigned char bytes_[16] = {};
  unsigned bits_ = 0;  // prefix length, up to 128; IPv4 networks are mapped into IPv6
};

struct AddressRules {
  bool any = false;              // permit every address
  std::vector<Network> allowed;  // permitted in addition to public addresses

  bool permit(std::string_view address) const noexcept;
};

}  // namespace builtin_http
