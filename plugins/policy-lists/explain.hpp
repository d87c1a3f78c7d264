// Explains how the lists would decide a call that is described in JSON (bh.explain/1).
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "lists.hpp"

namespace bulkhead::lists {

// `call` and the returned JSON have the formats that bh_explain defines. On failure, returns a
// message that states what is invalid in `call`.
std::expected<std::string, std::string> explain(const Lists &lists, std::string_view call);

}  // namespace bulkhead::lists
