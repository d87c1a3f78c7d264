// Local addresses to which plugins may connect through the host. They are announced before the
// first byte from outside is read.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead {

class DialRules {
 public:
  static constexpr std::size_t max_addresses = 64;

  // `address` holds a sockaddr: AF_UNIX with a path, or a loopback address. BH_E_INVALID,
  // BH_E_LIMIT.
  Result<void> announce(std::string_view address);

  // Returns a non-blocking stream socket, connected or connecting. BH_E_DENIED: the address was not
  // announced. Any thread, while nothing is announced.
  Result<OwnedFd> dial(std::string_view address) const;

 private:
  std::set<std::string, std::less<>> announced_;
};

}  // namespace bulkhead
