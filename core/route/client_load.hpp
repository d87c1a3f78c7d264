// Counts what one client has open, for the limits per client (limits.in_flight_per_session,
// limits.asks_per_session, limits.approvals_per_session), and identifies the client in rules,
// records and approvals.
//
// A session has its own counts. Each request of MCP 2026-07-28 is handled in a session of its own,
// which shares counts: with the other requests of its connection (a pipe or a guest's connection)
// or, without a connection (HTTP), with all requests of its transport, principal and peer.
//
// Used on the reactor thread. Owned by Clients. Limit: if there are max_idle entries and a new peer
// is added, the counts of all peers without open requests are removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>

#include "bulkhead/abi/ext/transport.h"

namespace bulkhead {

struct ClientLoad {
  // The handle of the first session with these counts. If the session does not share its counts,
  // this is its own handle.
  std::uint64_t client = 0;
  std::uint64_t since_ns = 0;   // when it was opened
  std::uint64_t calls = 0;      // requests to servers, including refused ones
  bool has_session = true;      // false for sessionless requests without a connection
  std::uint32_t requests = 0;   // pending sessionless requests, except subscriptions/listen
  std::uint32_t asks = 0;       // open asks, including approval forms
  std::uint32_t approvals = 0;  // calls that wait for approval
  // Subscribe requests of its subscriptions/listen requests that have no response yet.
  std::uint32_t subscribing = 0;
  std::uint64_t kept_bytes = 0;  // see KeptBytes
};

// Returns the part of a peer's address that its connections have in common: an IPv4 address without
// the port, the first 64 bits of an IPv6 address, or the user of a Unix socket ("uid:1000 pid:7").
// An IPv4-mapped IPv6 address is kept completely, without the port. All loopback addresses are one
// peer. Other addresses are returned unchanged.
std::string peer_group(std::string_view address);

class ClientLoads {
 public:
  static constexpr std::size_t max_idle = 1024;

  // Returns the counts for a sessionless message that arrived without a session. A peer that has no
  // open request and whose last message arrived more than `idle_ns` ago gets new counts, like a
  // client whose session has expired.
  std::shared_ptr<ClientLoad> of(const bh_peer &peer, std::uint64_t now_ns, std::uint64_t idle_ns);
  std::size_t size() const noexcept { return loads_.size(); }  // for tests

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // transport, principal, peer

  struct Entry {
    std::shared_ptr<ClientLoad> load;
    std::uint64_t used_ns;  // when the last message arrived
  };

  std::map<Key, Entry> loads_;
};

}  // namespace bulkhead
