// Counts calls to operator new in a test that is linked with count_allocations.cpp. Under
// ThreadSanitizer, which defines the operators itself, the count is always 0.
#pragma once

#include <cstddef>

namespace bulkhead {

std::size_t count_allocations() noexcept;

}  // namespace bulkhead
