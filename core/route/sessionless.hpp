// The sessionless streams that are open: requests that came without a session and are not answered
// yet. Owner: Clients. Thread: [io]. Bound: limits.sessions.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "bulkhead/abi/ext/transport.h"

namespace bulkhead {

class ClientEnd;

class SessionlessStreams {
 public:
  // False: that transport has such a stream open.
  bool add(const ClientEnd &end, std::uint64_t stream, bh_session handle) {
    return open_.emplace(std::pair{&end, stream}, handle).second;
  }
  bool holds(const ClientEnd &end, std::uint64_t stream) const {
    return open_.contains({&end, stream});
  }
  // Ends it; what add() was given, or 0 where it is not open.
  bh_session take(const ClientEnd &end, std::uint64_t stream) {
    const auto node = open_.extract({&end, stream});
    return node.empty() ? 0 : node.mapped();
  }

 private:
  std::map<std::pair<const ClientEnd *, std::uint64_t>, bh_session> open_;
};

}  // namespace bulkhead
