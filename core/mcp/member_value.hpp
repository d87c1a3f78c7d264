// Returns the value of a member whose range in a Scan includes its name, such as Scan::result_type.
#pragma once

#include <string_view>

namespace bulkhead::mcp {

// `member` is validated JSON: the name, a colon and the value. The result is empty if `member` is
// empty, and otherwise points into it.
inline std::string_view member_value(std::string_view member) noexcept {
  if (member.empty()) return {};
  member.remove_prefix(member.find('"', 1) + 1);
  const std::size_t at = member.find_first_not_of(" \t\r\n:");
  return at == std::string_view::npos ? std::string_view{} : member.substr(at);
}

}  // namespace bulkhead::mcp
