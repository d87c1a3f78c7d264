// The items that one upstream lists, stored as the received bytes.
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
  std::string_view member;  // of the list result
  std::string_view key;     // the item member that contains its name
  std::string_view noun;
};
const ItemKindFacts &facts(ItemKind kind) noexcept;

// The hash of an item's definition as the server wrote it. 128 bits of BLAKE2b are enough to
// prevent a second definition with the same hash. All zeros if there is no definition.
using DefinitionHash = std::array<std::uint8_t, 16>;
std::string to_hex(const DefinitionHash &hash);
DefinitionHash definition_hash(std::string_view raw);

// All items of one kind that one upstream lists. `bytes` contains the concatenated items.
struct ItemList {
  struct Item {
    mcp::Range raw;         // position in `bytes`
    mcp::Range key;         // position in `bytes` of the name's string token, including its quotes
    DefinitionHash hash{};  // of raw
  };
  // Names of skipped items that contain hidden characters (mcp::hidden_character), written as
  // \uXXXX. Limited to max_left_out names of max_shown_name bytes, without duplicates.
  static constexpr std::size_t max_left_out = 16, max_shown_name = 120;
  std::string bytes;
  std::vector<Item> items;
  std::vector<std::string> left_out;

  bool operator==(const ItemList &other) const {
    return bytes == other.bytes && left_out == other.left_out;
  }
};

// Appends the items from one list result (validated JSON). Returns the next cursor token (with
// quotes), or nullopt on the last page. Skips unnamed items and tools hidden by the allow and deny
// lists. Items whose names contain hidden characters are skipped, and their names are added to
// `left_out`. Returns BH_E_LIMIT if a profile limit is exceeded.
Result<std::optional<std::string>> append_page(ItemKind kind, std::string_view result,
                                               const ServerDef &definition, const Limits &limits,
                                               ItemList *out);

// Removes the tools that this definition hides. Returns true if any tool was removed.
bool hide_tools(const ServerDef &definition, ItemList *tools);
// Removes these items. Returns true if any were removed.
bool remove_items(ItemList *list, const std::function<bool(const ItemList::Item &)> &which);

}  // namespace bulkhead
