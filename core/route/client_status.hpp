// The connected clients, for `bulkhead status`. The texts come from clients: a program that
// displays them must escape the characters that its display interprets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bulkhead {

// The open sessions of clients with the same names.
struct ClientStatus {
  // Maximum length of a list. Additional clients count only in the total number of sessions.
  static constexpr std::size_t max_listed = 64;

  std::string claimed_name;             // clientInfo.name, as claimed by the client; not verified
  std::string process_name, transport;  // as reported by the transport
  std::uint64_t sessions = 0;
  std::uint64_t calls = 0;  // of these sessions, in this process
};

}  // namespace bulkhead
