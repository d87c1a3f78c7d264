// Cursors of lists: opaque, authenticated, bound to one version of one list. Thread: I/O thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/items.hpp"

namespace bulkhead {

class ListCursors {
 public:
  // key: random; cursors of another process or made by a client are refused.
  explicit ListCursors(std::uint64_t key) : key_(key) {}

  // first: index of the page's first item. version: of the list.
  std::string encode(std::uint64_t version, ItemKind kind, std::uint32_t first) const;
  // Empty: not a cursor of this process, or of another list or version.
  std::optional<std::uint32_t> decode(std::uint64_t version, ItemKind kind,
                                      std::string_view text) const;

 private:
  const std::uint64_t key_;
};

}  // namespace bulkhead
