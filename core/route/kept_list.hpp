// What a lane lists as one text, so that it can be kept and listed again without starting the
// server.
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

// A JSON object: `capabilities` and `instructions` as a server's initialize has them, and each list
// under the name that it has in its answer. Empty: it would be longer than max_kept_list_bytes.
std::string kept_list_text(const ServerCaps &caps, const std::string &instructions,
                           const std::array<ItemList, item_kinds> &items);

// The text may be anything: it is believed no more than an answer of the server, and read as one,
// with the same bounds and the definition's allow and deny lists. False: it is no such text.
bool read_kept_list(std::string_view text, const ServerDef &definition, const Limits &limits,
                    ListedItems *out);

}  // namespace bulkhead
