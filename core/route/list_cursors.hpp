// Encodes and decodes list cursors. A cursor is opaque to clients, is authenticated with a key, and
// is valid only for one list of one catalogue. Used on the reactor thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/items.hpp"

namespace bulkhead {

class ListCursors {
 public:
  // `key` must be random. It prevents clients from forging cursors or using cursors from another
  // process.
  explicit ListCursors(std::uint64_t key) : key_(key) {}

  // `first` is the index of the first item on the page. `version` is Catalogue::version().
  std::string encode(std::uint64_t version, ItemKind kind, std::uint32_t first) const;
  // Returns the index of the first item. Returns nullopt if the cursor was not created by this
  // process for this list of this catalogue.
  std::optional<std::uint32_t> decode(std::uint64_t version, ItemKind kind,
                                      std::string_view text) const;

 private:
  const std::uint64_t key_;
};

}  // namespace bulkhead
