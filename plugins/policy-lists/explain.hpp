// What the lists say of a call that is described (bh.explain/1).
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "lists.hpp"

namespace bulkhead::lists {

// `call` and the answer: see bh_explain. An error says what is wrong with the call.
std::expected<std::string, std::string> explain(const Lists &lists, std::string_view call);

}  // namespace bulkhead::lists
