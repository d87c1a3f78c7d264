// Keys of the views of sessionless requests, for servers that run per client. The protocol has no
// sessions, so all requests of a transport's connection (a pipe, a guest's connection) share such a
// server, and otherwise all requests of a principal of a transport. The keys differ from the
// handles of sessions, which are keys of views, too.
//
// Used on the I/O thread. Owned by Clients. Limit: max_principals; each request of further
// principals has such a server to itself.
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

  // Returns true if the key is one of a scope, not a session's handle.
  static constexpr bool is_scope(std::uint64_t key) noexcept { return (key & scope_bit) != 0; }
  static constexpr std::uint64_t of(bh_session connection) noexcept {
    return connection | scope_bit;
  }
  // Returns `otherwise` at the limit.
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
  // Handles of sessions are below 2^53.
  static constexpr std::uint64_t scope_bit = 1ull << 63, principal_bit = 1ull << 62;

  std::map<std::pair<std::string, std::string>, std::uint64_t> principals_;
};

}  // namespace bulkhead
