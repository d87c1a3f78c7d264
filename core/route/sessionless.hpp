// Keeps track of open sessionless streams. Each stream belongs to a request that was sent without a
// session and has no response yet.
//
// Owner: Clients. Used on the reactor thread. Limit: limits.sessions.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "bulkhead/abi/ext/transport.h"

namespace bulkhead {

class ClientEnd;

class SessionlessStreams {
 public:
  // Adds a stream. Returns false if the transport already uses this stream.
  bool add(const ClientEnd &end, std::uint64_t stream, bh_session handle) {
    return open_.emplace(std::pair{&end, stream}, handle).second;
  }
  bool holds(const ClientEnd &end, std::uint64_t stream) const {
    return open_.contains({&end, stream});
  }
  // Removes the stream and returns its session, or 0 if the stream is not open.
  bh_session take(const ClientEnd &end, std::uint64_t stream) {
    const auto node = open_.extract({&end, stream});
    return node.empty() ? 0 : node.mapped();
  }

 private:
  std::map<std::pair<const ClientEnd *, std::uint64_t>, bh_session> open_;
};

}  // namespace bulkhead
