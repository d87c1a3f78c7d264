// Lists of lazy servers from their last run, kept so that listing does not start the servers. Plain
// values: the program that stores them does not interpret the texts, which servers wrote;
// core/route/kept_list.hpp does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead {

// The lists for clients with these capabilities (core/route/protocol.hpp), since a server may list
// other tools to a client with sampling.
struct KeptList {
  std::uint32_t caps = 0;
  std::string text;
};

struct KeptLists {
  std::string definition;  // identifies the definition that they belong to; empty: lists are not
                           // kept
  std::vector<KeptList> lists;
  // Kept lists are not part of a server's definition.
  friend bool operator==(const KeptLists &, const KeptLists &) { return true; }
};

// A list that is new or has changed.
struct ListNews {
  std::string server, definition;
  KeptList list;
};

// A longer list is not kept: the server is started when it is listed.
inline constexpr std::size_t max_kept_list_bytes = 1u << 20;
inline constexpr std::size_t most_kept_lists = 4;               // of one server
inline constexpr std::size_t max_kept_lists_bytes = 16u << 20;  // of all servers of a profile

// Replaces the list for the same capabilities; the oldest ones are dropped. An empty text removes
// that list.
void merge_kept_list(KeptLists *kept, KeptList list);

}  // namespace bulkhead
