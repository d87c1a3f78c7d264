// Counts operator new calls in a test that is linked with count_allocations.cpp. The count is
// always 0 under ThreadSanitizer, which defines the operators itself.
#pragma once

#include <cstddef>

namespace bulkhead {

std::size_t count_allocations() noexcept;

}  // namespace bulkhead
