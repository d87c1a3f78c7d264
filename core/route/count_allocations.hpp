// Counts calls to operator new, except those for over-aligned types. A test that uses this function
// must be linked with count_allocations.cpp. Under ThreadSanitizer, which replaces operator new
// itself, the result is always 0.
#pragma once

#include <cstddef>

namespace bulkhead {

std::size_t count_allocations() noexcept;

}  // namespace bulkhead
