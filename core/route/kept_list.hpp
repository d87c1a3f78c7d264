// The remembered list of a server: a lane's items as one text, so that they can be listed without
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

// Composes a JSON object with `capabilities` and `instructions` as in the result of initialize, and
// each list under the name that it has in its result. Empty: longer than max_kept_list_bytes.
std::string kept_list_text(const ServerCaps &caps, const std::string &instructions,
                           const std::array<ItemList, item_kinds> &items);

// Reads the text like an answer of the server, with the same limits and the definition's allow and
// deny lists: it is not trusted. False: the text is not a remembered list.
bool read_kept_list(std::string_view text, const ServerDef &definition, const Limits &limits,
                    ListedItems *out);

}  // namespace bulkhead
