// Cursors of lists: opaque, checked, and bound to one version of one list. Thread: [io].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/items.hpp"

namespace bulkhead {

class ListCursors {
 public:
  // key: random; a cursor of another process, or of a client's making, is refused.
  explicit ListCursors(std::uint64_t key) : key_(key) {}

  // first: place of the page's first item. version: of the list.
  std::string encode(std::uint64_t version, ItemKind kind, std::uint32_t first) const;
  // Nothing: it is none of ours, or of another list or version.
  std::optional<std::uint32_t> decode(std::uint64_t version, ItemKind kind,
                                      std::string_view text) const;

 private:
  const std::uint64_t key_;
};

}  // namespace bulkhead
