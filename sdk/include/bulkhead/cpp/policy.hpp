// Facts about the requests that policies receive. Header only; C++20.
#pragma once

#include <string_view>

namespace bh {

// Returns true for the methods for which a host never calls decide(), because their requests
// contain only an id or a URI. observe() receives their results with BH_REQUEST_UNDECIDED.
inline bool is_undecided(std::string_view method) noexcept {
  return method == "resources/unsubscribe" || method == "tasks/get" || method == "tasks/result" ||
         method == "tasks/cancel";
}

}  // namespace bh
