// What clients are connected, for `bulkhead status`. The texts come from clients: a program that
// shows them must escape what its own display interprets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bulkhead {

// The open sessions of clients with the same names.
struct ClientStatus {
  // In a list; further names are in the number of all sessions only.
  static constexpr std::size_t max_listed = 64;

  std::string claimed_name;  // the client's own claim (clientInfo.name); nothing verifies it
  std::string process_name, transport;  // as reported by the transport
  std::uint64_t sessions = 0;
  std::uint64_t calls = 0;  // of these sessions, in this process
};

}  // namespace bulkhead
