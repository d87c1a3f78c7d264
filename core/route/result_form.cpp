#include "route/result_form.hpp"

namespace bulkhead {

bool has_members(std::string_view object) noexcept {
  const std::size_t first = object.find_first_not_of(" \t\r\n", 1);
  return first != std::string_view::npos && object[first] != '}';
}

std::string formed_result(const ResultForm &form, std::string_view result) {
  if (!result.starts_with('{')) return std::string(result);
  const std::string_view members = form.members(result);
  std::string out("{");
  out.append(members);
  if (!members.empty() && has_members(result)) out += ',';
  return out.append(result.substr(1));
}

}  // namespace bulkhead
