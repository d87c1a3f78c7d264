// What lazy servers listed when they last ran, kept so that to list them does not start them. Plain
// values: whoever keeps them does not look into the texts, which servers wrote;
// core/route/kept_list.hpp does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead {

// For clients with these capabilities (core/route/protocol.hpp), since a server may list other
// tools to one with sampling.
struct KeptList {
  std::uint32_t caps = 0;
  std::string text;
};

struct KeptLists {
  std::string definition;  // what they are for, as the keeper knows it; empty: nobody keeps them
  std::vector<KeptList> lists;
  // Not part of a server's definition.
  friend bool operator==(const KeptLists &, const KeptLists &) { return true; }
};

// A list that is new or another now.
struct ListNews {
  std::string server, definition;
  KeptList list;
};

// A longer one is not kept: that server is started to be listed.
inline constexpr std::size_t max_kept_list_bytes = 1u << 20;
inline constexpr std::size_t most_kept_lists = 4;               // of one server
inline constexpr std::size_t max_kept_lists_bytes = 16u << 20;  // of all servers of a profile

// Takes a list in, in place of the one for the same capabilities; the oldest go. An empty text
// takes that one away.
void merge_kept_list(KeptLists *kept, KeptList list);

}  // namespace bulkhead
