// Address filter for connections: allows public Internet addresses, and networks listed in the
// profile.
#pragma once

#include <string_view>
#include <vector>

namespace builtin_http {

// Returns true for globally reachable addresses. Returns false for private, loopback, link-local
// (cloud metadata), shared, documentation, multicast and reserved addresses, for IPv6 addresses
// that embed one of these IPv4 addresses, and for invalid addresses.
bool is_public_address(std::string_view address) noexcept;

// A network or an address, such as "10.1.0.0/16", "fd00::/8" or "127.0.0.1".
class Network {
 public:
  // Returns false if `text` is not a network or has bits set after its prefix.
  static bool parse(std::string_view text, Network *out) noexcept;

  // An IPv4 address mapped into IPv6 (::ffff:10.1.2.3) is treated as IPv4.
  bool contains(std::string_view address) const noexcept;

 private:
  unsigned char bytes_[16] = {};
  unsigned bits_ = 0;  // prefix length of 128 bits; IPv4 is mapped into IPv6
};

struct AddressRules {
  bool any = false;              // allow every address
  std::vector<Network> allowed;  // in addition to public addresses

  bool permit(std::string_view address) const noexcept;
};

}  // namespace builtin_http
