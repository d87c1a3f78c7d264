// A group of connected clients, as shown by `bulkhead status`. Its strings come from clients, so a
// program that displays them must escape the characters that its display interprets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bulkhead {

// Counts the sessions and calls of all clients that have the same names, transport and protocol
// revision.
struct ClientStatus {
  // The maximum length of a list of ClientStatus. The sessions of clients beyond this limit are
  // counted only in the total number of sessions. Sessionless clients beyond it are not counted.
  static constexpr std::size_t max_listed = 64;

  std::string claimed_name;             // clientInfo.name; not verified
  std::string process_name, transport;  // as reported by the transport
  std::string protocol;                 // MCP revision; empty before the client has stated one
  // Open sessions. 0 for clients whose requests arrive outside any session of the transport, which
  // are listed until they have been idle for RecentClients::listed_ns.
  std::uint64_t sessions = 0;
  std::uint64_t calls = 0;  // calls by these clients in this process
};

}  // namespace bulkhead
