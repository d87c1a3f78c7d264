// Local addresses to which plugins may connect through the host. The addresses are announced before
// any external data is read.
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

  // `address` contains a sockaddr: AF_UNIX with a path, or a loopback address. Returns BH_E_INVALID
  // for other addresses, or BH_E_LIMIT if too many addresses have been announced.
  Result<void> announce(std::string_view address);

  // Returns a non-blocking stream socket that is connected or connecting. Returns BH_E_DENIED if
  // the address was not announced. Thread-safe, except during announce().
  Result<OwnedFd> dial(std::string_view address) const;

 private:
  std::set<std::string, std::less<>> announced_;
};

}  // namespace bulkhead
