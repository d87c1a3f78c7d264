// Which addresses may be connected to: those of the public Internet, and networks that the profile
// names.
#pragma once

#include <string_view>
#include <vector>

namespace builtin_http {

// False for private, loopback, link-local (cloud metadata lives there), shared, documentation,
// multicast and reserved addresses, for IPv6 forms that carry such an IPv4 address, and for text
// that is no address.
bool is_public_address(std::string_view address) noexcept;

// "10.1.0.0/16", "fd00::/8", "127.0.0.1".
class Network {
 public:
  // False: text is none, or has bits set behind its prefix.
  static bool parse(std::string_view text, Network *out) noexcept;

  // IPv4 in IPv6 (::ffff:10.1.2.3) counts as IPv4.
  bool contains(std::string_view address) const noexcept;

 private:
  unsigned char bytes_[16] = {};
  unsigned bits_ = 0;  // of 128; IPv4 is mapped into IPv6
};

struct AddressRules {
  bool any = false;              // every address
  std::vector<Network> allowed;  // beside the public ones

  bool permit(std::string_view address) const noexcept;
};

}  // namespace builtin_http
