// Reads the lists (tools, resources, templates, prompts) that an upstream sends, and stores each
// item as received.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "mcp/scan.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

enum class ItemKind : std::uint8_t { tool, resource, resource_template, prompt };
inline constexpr std::size_t item_kinds = 4;
inline constexpr std::array<ItemKind, item_kinds> all_item_kinds = {
    ItemKind::tool, ItemKind::resource, ItemKind::resource_template, ItemKind::prompt};

struct ItemKindFacts {
  mcp::Method list_method;
  std::string_view list_method_text;
  std::string_view member;  // the member of the list result
  std::string_view key;     // the member of an item that contains its name
  std::string_view noun;
};
const ItemKindFacts &facts(ItemKind kind) noexcept;

// The hash of an item's definition as sent by the server: 128 bits of BLAKE2b, which make it
// infeasible to find another definition with the same hash. All zeros if there is no definition.
using DefinitionHash = std::array<std::uint8_t, 16>;
std::string to_hex(const DefinitionHash &hash);
DefinitionHash definition_hash(std::string_view raw);

// One upstream's items of one kind. `bytes` contains the items without separators.
struct ItemList {
  struct Item {
    mcp::Range raw;         // the item's range in `bytes`
    mcp::Range key;         // the range of the item's name in `bytes`, including the quotes
    DefinitionHash hash{};  // hash of the raw item
  };
  // `left_out` contains the names of the items that were skipped because of hidden characters (see
  // mcp::hidden_character). Each hidden character is written as \uXXXX. There are at most
  // max_left_out distinct names, each truncated to at most max_shown_name bytes.
  static constexpr std::size_t max_left_out = 16, max_shown_name = 120;
  std::string bytes;
  std::vector<Item> items;
  std::vector<std::string> left_out;
  // In the same form: the names of items that were skipped because two members have the same name,
  // ignoring case. Programs that read such an item disagree about its name and its other values.
  std::vector<std::string> ambiguous;

  // Returns the item that has exactly this definition, or null. The item at index `at` is compared
  // first.
  const Item *find(const DefinitionHash &definition, std::size_t at = 0) const;
  // Returns the item with this name, or null.
  const Item *find_named(std::string_view name) const;

  bool operator==(const ItemList &other) const {
    return bytes == other.bytes && left_out == other.left_out && ambiguous == other.ambiguous;
  }
};

// Appends the items of one list result (validated JSON). Returns the next cursor token with its
// quotes, or nullopt on the last page. Items without a name, and tools that the allow and deny
// lists hide, are skipped. Items with hidden characters in their names are skipped and added to
// `left_out`, and those with two members of the same name (ignoring case) are skipped and added to
// `ambiguous`. Returns BH_E_LIMIT if a limit of the profile is exceeded, and BH_E_PROTOCOL if the
// result has no array of items.
Result<std::optional<std::string>> append_page(ItemKind kind, std::string_view result,
                                               const ServerDef &definition, const Limits &limits,
                                               ItemList *out);

// Removes the tools that the definition hides. Returns true if any tool was removed.
bool hide_tools(const ServerDef &definition, ItemList *tools);
// Removes the items for which `which` returns true. Returns true if any item was removed.
bool remove_items(ItemList *list, const std::function<bool(const ItemList::Item &)> &which);

}  // namespace bulkhead
