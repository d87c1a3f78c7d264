// The extension tables that a host provides to its plugins. Each host has its own set because the
// tables contain the host's limits.
#pragma once

#include <string_view>

#include "bulkhead/abi/host.h"

namespace bulkhead::host_tables {

// `Tables` is a list of classes from extensions.hpp.
template <class... Tables>
class TableSet : private Tables... {
 public:
  // `limits` must outlive this object and all plugins that have received a table.
  explicit TableSet(const bh_limits &limits) noexcept : Tables(limits)... {}
  TableSet(const TableSet &) = delete;
  TableSet &operator=(const TableSet &) = delete;

  // Returns null if the host does not provide this extension.
  const void *find(std::string_view id) const noexcept {
    const void *found = nullptr;
    static_cast<void>(((id == Tables::id && (found = &this->Tables::table, true)) || ...));
    return found;
  }
};

}  // namespace bulkhead::host_tables
