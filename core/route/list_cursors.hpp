// List cursors: opaque, authenticated, and bound to one version of one list. Used on the reactor
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/items.hpp"

namespace bulkhead {

class ListCursors {
 public:
  // `key` is random, so cursors created by another process or by a client are rejected.
  explicit ListCursors(std::uint64_t key) : key_(key) {}

  // `first` is the index of the page's first item, and `version` the version of the list.
  std::string encode(std::uint64_t version, ItemKind kind, std::uint32_t first) const;
  // Returns nullopt if the text is not a cursor created by this process, or belongs to another list
  // or version.
  std::optional<std::uint32_t> decode(std::uint64_t version, ItemKind kind,
                                      std::string_view text) const;

 private:
  const std::uint64_t key_;
};

}  // namespace bulkhead
