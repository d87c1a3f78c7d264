// Stored lists from earlier runs of lazy servers, so listing does not start the servers. The
// program that stores the lists does not interpret their text, which comes from the servers.
// core/route/kept_list.hpp interprets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead {

// The list for clients with these capabilities (core/route/protocol.hpp). A server may list
// different tools to a client that supports sampling.
struct KeptList {
  std::uint32_t caps = 0;
  std::string text;
};

struct KeptLists {
  std::string definition;  // identifies the definition; empty: lists are not stored
  std::vector<KeptList> lists;
  // Stored lists are not part of a server's definition, so they are not compared.
  friend bool operator==(const KeptLists &, const KeptLists &) { return true; }
};

// A new or changed list.
struct ListNews {
  std::string server, definition;
  KeptList list;
};

// Longer lists are not stored; the server is started for listing instead.
inline constexpr std::size_t max_kept_list_bytes = 1u << 20;
inline constexpr std::size_t most_kept_lists = 4;               // for each server
inline constexpr std::size_t max_kept_lists_bytes = 16u << 20;  // for all servers of a profile

// Replaces the list for the same capabilities, then drops the oldest lists that exceed the limits.
// An empty text removes the list for these capabilities.
void merge_kept_list(KeptLists *kept, KeptList list);

}  // namespace bulkhead
