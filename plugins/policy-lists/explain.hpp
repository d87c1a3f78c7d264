// Explains the decision of the lists for a described call (bh.explain/1).
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "lists.hpp"

namespace bulkhead::lists {

// For `call` and the answer see bh_explain. The error states what is invalid in `call`.
std::expected<std::string, std::string> explain(const Lists &lists, std::string_view call);

}  // namespace bulkhead::lists
