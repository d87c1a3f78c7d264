#include "sources/judge_places.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace bulkhead::program {

bool runs_in_endpoint(const PluginUse &use) {
  constexpr std::string_view builtin[] = {"policy-allow", "policy-lists", "policy-rules"};
  if (!use.compartment.empty()) return use.compartment == "endpoint";
  return std::find(std::begin(builtin), std::end(builtin), use.plugin) != std::end(builtin);
}

}  // namespace bulkhead::program
