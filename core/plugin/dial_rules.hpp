// The local addresses to which a plugin may connect through the host. They must be announced before
// any external data is read, so that such data cannot choose an address.
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

  // `address` contains a sockaddr with a Unix socket's path or a loopback address. Returns
  // BH_E_INVALID for other addresses, and BH_E_LIMIT if too many addresses have been announced.
  Result<void> announce(std::string_view address);

  // Returns a non-blocking stream socket that is connected or connecting. Returns BH_E_DENIED if
  // the address was not announced, BH_E_UNAVAILABLE if the connection is rejected, and BH_E_IO if
  // no socket can be created. Thread-safe, but must not run concurrently with announce().
  Result<OwnedFd> dial(std::string_view address) const;

 private:
  std::set<std::string, std::less<>> announced_;
};

}  // namespace bulkhead
