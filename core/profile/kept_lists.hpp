// Defines the stored lists (tools, resources, prompts) of shared servers. If a list from an
// earlier run is available, a lazy server need not be started just to obtain its list. The text of
// a list comes from the server. The program that stores it does not interpret it;
// core/route/kept_list.hpp does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead {

// A list as the server returned it to clients with these capabilities (core/route/protocol.hpp).
// The capabilities matter because a server may list different tools to a client that supports
// sampling.
struct KeptList {
  std::uint32_t caps = 0;
  std::string text;
};

struct KeptLists {
  std::string definition;  // identifies the definition; if empty, lists are not stored
  std::vector<KeptList> lists;
  // Stored lists are not part of a server's definition, so a comparison ignores them.
  friend bool operator==(const KeptLists &, const KeptLists &) { return true; }
};

// A new or changed list from a server.
struct ListNews {
  std::string server, definition;
  KeptList list;
};

// Maximum size of the text of one list. A longer list is not stored, so its server must be started
// to obtain the list.
inline constexpr std::size_t max_kept_list_bytes = 1u << 20;
// Maximum number of lists per server.
inline constexpr std::size_t most_kept_lists = 4;
// Maximum total size of the lists of all servers in a profile.
inline constexpr std::size_t max_kept_lists_bytes = 16u << 20;

// Adds a list, replacing the list for the same capabilities, and then drops the oldest lists until
// at most most_kept_lists remain. If the text is empty or longer than max_kept_list_bytes, only
// removes the list for these capabilities.
void merge_kept_list(KeptLists *kept, KeptList list);

}  // namespace bulkhead
