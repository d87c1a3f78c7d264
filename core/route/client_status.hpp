// A group of connected clients, as shown by `bulkhead status`. Its strings come from clients, so a
// program that displays them must escape the characters that its display interprets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bulkhead {

// The open sessions whose clients have the same names.
struct ClientStatus {
  // Maximum length of the list. Clients beyond this limit are counted only in the total number of
  // sessions.
  static constexpr std::size_t max_listed = 64;

  std::string claimed_name;             // clientInfo.name; not verified
  std::string process_name, transport;  // as reported by the transport
  std::uint64_t sessions = 0;
  std::uint64_t calls = 0;  // calls by these sessions in this process
};

}  // namespace bulkhead
