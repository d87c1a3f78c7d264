// Serializes and parses the stored list of a server. The stored list allows the gateway to list the
// items of a server without starting it.
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

// Serializes the lists as a JSON object. Its members `capabilities` and `instructions` have the
// same form as in the result of initialize, and each list has the same member name as in its list
// result. Returns an empty string if the text would be longer than max_kept_list_bytes.
std::string kept_list_text(const ServerCaps &caps, const std::string &instructions,
                           const std::array<ItemList, item_kinds> &items);

// Parses a stored list. The text is untrusted: it is subject to the same limits as a response from
// the server and to the definition's allow and deny lists. Returns false if the text is not a valid
// stored list; *out is then unspecified.
bool read_kept_list(std::string_view text, const ServerDef &definition, const Limits &limits,
                    ListedItems *out);

}  // namespace bulkhead
