// A server's stored list: a lane's items serialized into one string, so they can be listed without
// starting the server.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "catalog/items.hpp"
#include "profile/profile.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

struct ListedItems {
  ServerCaps caps;
  std::string instructions;
  std::array<ItemList, item_kinds> items;
};

// Composes a JSON object with `capabilities` and `instructions` as in the result of initialize.
// Each list has the same member name as in its list result. Returns an empty string if the output
// is longer than max_kept_list_bytes.
std::string kept_list_text(const ServerCaps &caps, const std::string &instructions,
                           const std::array<ItemList, item_kinds> &items);

// Parses the text like a server's answer, with the same limits and the definition's allow and deny
// lists, because the text is not trusted. Returns false if the text is not a stored list.
bool read_kept_list(std::string_view text, const ServerDef &definition, const Limits &limits,
                    ListedItems *out);

}  // namespace bulkhead
