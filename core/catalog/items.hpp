// What one upstream lists: raw items, kept as the bytes that came.
#pragma once

#include <array>
#include <cstdint>
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
  std::string_view key;     // the member of an item that names it
  std::string_view noun;
};
const ItemKindFacts &facts(ItemKind kind) noexcept;

// Of an item's definition as the server wrote it; 128 bits of BLAKE2b, so that nobody finds another
// definition with the same one. All zero: there is no definition.
using DefinitionHash = std::array<std::uint8_t, 16>;
std::string to_hex(const DefinitionHash &hash);
DefinitionHash definition_hash(std::string_view raw);

// All items of one kind that one upstream listed. The items' bytes lie behind each other in
// `bytes`.
struct ItemList {
  struct Item {
    mcp::Range raw;         // in bytes
    mcp::Range key;         // the naming string token, with quotes, in bytes
    DefinitionHash hash{};  // of raw
  };
  // Names that were left out because they have hidden characters (mcp::hidden_character), with
  // those as \uXXXX; at most max_left_out of at most max_shown_name bytes, each once.
  static constexpr std::size_t max_left_out = 16, max_shown_name = 120;
  std::string bytes;
  std::vector<Item> items;
  std::vector<std::string> left_out;

  bool operator==(const ItemList &other) const {
    return bytes == other.bytes && left_out == other.left_out;
  }
};

// Appends the items of one list result (validated JSON) and returns the next cursor token (with
// quotes), or nullopt on the last page. Items without a name, tools that the definition's allow and
// deny lists hide, and items whose name has hidden characters are left out; `left_out` has the
// last ones. BH_E_LIMIT beyond the profile's bounds.
Result<std::optional<std::string>> append_page(ItemKind kind, std::string_view result,
                                               const ServerDef &definition, const Limits &limits,
                                               ItemList *out);

// Takes off again the tools that this definition hides. True if there were any.
bool hide_tools(const ServerDef &definition, ItemList *tools);

}  // namespace bulkhead
