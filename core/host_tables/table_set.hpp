// The extension tables that one host offers. Each host has its own set, so that the limits in a
// table are those of its host; a host leaves an extension out by not naming it.
#pragma once

#include <string_view>

#include "bulkhead/abi/host.h"

namespace bulkhead::host_tables {

// Tables: classes of extensions.hpp.
template <class... Tables>
class TableSet : private Tables... {
 public:
  // `limits` outlive this and the plugins that have got a table.
  explicit TableSet(const bh_limits &limits) noexcept : Tables(limits)... {}
  TableSet(const TableSet &) = delete;
  TableSet &operator=(const TableSet &) = delete;

  // Null: not offered.
  const void *find(std::string_view id) const noexcept {
    const void *found = nullptr;
    static_cast<void>(((id == Tables::id && (found = &this->Tables::table, true)) || ...));
    return found;
  }
};

}  // namespace bulkhead::host_tables
