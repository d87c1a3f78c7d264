// Computes view keys for sessionless requests. If a server runs per client, all requests with the
// same key share one instance of it. Requests that arrive on the same connection (a pipe or a
// guest's connection) get the same key. Otherwise, requests with the same transport and principal
// get the same key. The keys differ from session handles, which are also used as view keys.
//
// Used on the reactor thread. Owned by Clients. Limit: max_principals. Beyond this limit, each
// request from a new principal gets its own key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "bulkhead/abi/ext/transport.h"

namespace bulkhead {

class RequestScopes {
 public:
  static constexpr std::size_t max_principals = 1024;

  // Returns true for keys created by this class, and false for session handles.
  static constexpr bool is_scope(std::uint64_t key) noexcept { return (key & scope_bit) != 0; }
  static constexpr std::uint64_t of(bh_session connection) noexcept {
    return connection | scope_bit;
  }
  // Returns the key for a transport and principal. If they have no key yet and the limit has been
  // reached, returns `otherwise`.
  std::uint64_t of(const std::string &transport, const std::string &principal,
                   std::uint64_t otherwise) {
    const auto at = principals_.find({transport, principal});
    if (at != principals_.end()) return at->second;
    if (principals_.size() >= max_principals) return otherwise;
    const std::uint64_t key = scope_bit | principal_bit | principals_.size();
    principals_.emplace(std::pair{transport, principal}, key);
    return key;
  }

 private:
  // Session handles are smaller than 2^53, so they never have these bits.
  static constexpr std::uint64_t scope_bit = 1ull << 63, principal_bit = 1ull << 62;

  std::map<std::pair<std::string, std::string>, std::uint64_t> principals_;
};

}  // namespace bulkhead
